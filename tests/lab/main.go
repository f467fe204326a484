// Command lab runs one component of a Kubernetes control plane, with the flags of that component:
//
//	lab etcd|apiserver|controllers|scheduler|kubectl [flag]...
//	lab certs DIR
//
// It is for tests only. Each component keeps a process of its own, because upstream installs one
// signal handler per process, keeps feature gates and metrics in globals, and because a test must
// be able to stop one of them and not the others.
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's own metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// components maps a sub-command to what runs it. The first argument is the sub-command itself.
var components = map[string]func(arguments []string) int{
	"etcd": func(arguments []string) int {
		etcdmain.Main(arguments) // ends the process itself when it fails
		return 0
	},
	"apiserver":   upstream(apiserver.NewAPIServerCommand),
	"controllers": upstream(controllers.NewControllerManagerCommand),
	"scheduler":   upstream(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":     runKubectl,
	"certs":       runCerts,
}

func upstream(build func() *cobra.Command) func([]string) int {
	return func(arguments []string) int {
		command := build()
		command.SetArgs(arguments[1:])
		return cli.Run(command)
	}
}

func runKubectl([]string) int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints it as kubectl does, and ends the process
	}
	return 0
}

func runCerts(arguments []string) int {
	if len(arguments) != 2 {
		fmt.Fprintln(os.Stderr, "usage: lab certs DIR")
		return 2
	}
	if err := writeCertificates(arguments[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func usage() int {
	names := make([]string, 0, len(components))
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: lab %s [argument]...\n", strings.Join(names, "|"))
	return 2
}

// endWithStdin ends the process when whoever started it has gone, however that came about.
func endWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func main() {
	os.Args = os.Args[1:] // upstream commands read the global
	if len(os.Args) == 0 || components[os.Args[0]] == nil {
		os.Exit(usage())
	}
	if os.Getenv("LAB_ENDS_WITH_STDIN") != "" {
		go endWithStdin()
	}
	os.Exit(components[os.Args[0]](os.Args))
}
