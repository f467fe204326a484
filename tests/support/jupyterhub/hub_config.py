"""Configuration of the JupyterHub that tests start; it runs under the Hub's own Python.

No proxy is started: nothing of what is tested goes through one. A user server is either a mark in a
folder (`MarkSpawner`, which can be told to be slow), or a pod made by the real KubeSpawner.
"""

import asyncio
import json
import os
from pathlib import Path

from jupyterhub.proxy import Proxy
from jupyterhub.spawner import Spawner

told = json.loads(os.environ["TOLD"])
here = Path(told["directory"])


class NoProxy(Proxy):
    """Knows its routes, and leads nowhere."""

    should_start = False
    routes: dict = {}  # noqa: RUF012 - one proxy per process

    async def add_route(self, routespec, target, data):
        self.routes[routespec] = {"routespec": routespec, "target": target, "data": data}

    async def delete_route(self, routespec):
        self.routes.pop(routespec, None)

    async def get_all_routes(self):
        return self.routes


class MarkSpawner(Spawner):
    """A server is a file; options say what it waits for."""

    @property
    def mark(self):
        return here / f"running-{self.user.name.encode().hex()}-{self.name}"

    async def start(self):
        await self._wait_for("hold_start")
        self.mark.write_text(json.dumps(self.user_options))
        return "127.0.0.1", told["answering_port"]

    async def poll(self):
        return None if self.mark.exists() else 0

    async def stop(self, now=False):  # noqa: FBT002 - as the Hub calls it
        await self._wait_for("hold_stop")
        self.mark.unlink(missing_ok=True)

    async def _wait_for(self, option):
        while self.user_options.get(option) and not (here / option).exists():
            await asyncio.sleep(0.05)


c = get_config()  # noqa: F821 - traitlets defines it
c.JupyterHub.bind_url = "http://127.0.0.1:1"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{told['port']}"
c.JupyterHub.db_url = f"sqlite:///{here}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{here}/cookie_secret"
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.allow_named_servers = True
c.JupyterHub.cleanup_servers = False
c.JupyterHub.concurrent_spawn_limit = told["concurrent_spawn_limit"]
c.JupyterHub.tornado_settings = {"slow_stop_timeout": 0.3, "slow_spawn_timeout": 0.3}
c.JupyterHub.services = [
    {"name": name, "api_token": token["secret"]} for name, token in told["tokens"].items()
]
c.JupyterHub.load_roles = [
    {"name": f"role-{name}", "services": [name], "scopes": token["scopes"]}
    for name, token in told["tokens"].items()
]
c.Authenticator.allow_all = True
c.Authenticator.allowed_users = set(told["users"])
c.Spawner.poll_interval = 1
c.Spawner.http_timeout = 20

if told["namespace"]:
    c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
    c.KubeSpawner.namespace = told["namespace"]
    c.KubeSpawner.pod_connect_ip = "127.0.0.1"
    c.KubeSpawner.port = told["answering_port"]
    c.KubeSpawner.image = "example.org/notebook:1"
    c.KubeSpawner.profile_list = [
        {
            "display_name": name,
            "slug": name,
            "kubespawner_override": {"extra_resource_limits": {"nvidia.com/gpu": gpus}},
        }
        for name, gpus in (("gpu-small", "1"), ("gpu-large", "2"))
    ]
    c.KubeSpawner.delete_grace_period = 1
    c.KubeSpawner.events_enabled = False
else:
    c.JupyterHub.spawner_class = MarkSpawner
