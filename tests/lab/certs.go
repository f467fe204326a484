package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// masters is the group that RBAC always lets do everything.
const masters = "system:masters"

// clients are the identities that get a client certificate: file name to subject.
var clients = map[string]pkix.Name{
	"admin":       {CommonName: "lab-admin", Organization: []string{masters}},
	"kubelet":     {CommonName: "lab-kubelet", Organization: []string{masters}},
	"controllers": {CommonName: "system:kube-controller-manager"},
	"scheduler":   {CommonName: "system:kube-scheduler"},
}

// writeCertificates fills a folder: ca, the API server's certificate for loopback, one per client,
// and the key that signs ServiceAccount tokens. Good for a day; nothing reads them afterwards.
func writeCertificates(dir string) error {
	ca := certificate(pkix.Name{CommonName: "lab-ca"})
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caKey, err := issue(dir, "ca", ca, ca, nil)
	if err != nil {
		return err
	}
	server := certificate(pkix.Name{CommonName: "kube-apiserver"})
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
	server.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	_, err = issue(dir, "apiserver", server, ca, caKey)
	for name, subject := range clients {
		client := certificate(subject)
		client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		_, failed := issue(dir, name, client, ca, caKey)
		err = errors.Join(err, failed)
	}
	_, failed := newKey(dir, "service-account")
	return errors.Join(err, failed)
}

func certificate(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

// issue writes NAME.key and NAME.crt; without a parent key the certificate signs itself.
func issue(dir, name string, cert, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := newKey(dir, name)
	if err != nil {
		return nil, err
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, err
	}
	return key, writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der)
}

func newKey(dir, name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
