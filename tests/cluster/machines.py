"""Machines that a test makes on this one, in namespaces: each has an address, a home and processes of its own."""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT

USER, HOME = "you", Path("/srv")  # root by another name; its real home, where Python may be, stays as it is
VENV = HOME / "raysim-venv"
TOOLS = ("ip", "nsenter", "rsync", "ssh", "sshd", "unshare")
# The mounts last as long as the machine. A machine's first process is its sshd, and all others end with that.
START = """
mount --make-rprivate / && mount --bind "$1/shared" /mnt && mount --bind "$1/passwd" /etc/passwd &&
mount --bind "$2" "$3" && mount -t tmpfs none /run && mkdir -p /run/sshd /tmp/ray && mount -t tmpfs none /tmp/ray &&
exec "$(command -v sshd)" -D -f "$1/sshd_config"
"""
SSHD = """
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PermitRootLogin yes
StrictModes no
PidFile none
"""


@dataclass(frozen=True)
class Machine:
    """A machine. Its home, /run, /tmp/ray and network are its own, and /mnt/shared is one folder for all of them."""

    address: str
    home: Path  # where this machine has it; in the machine, it is HOME
    pid: int  # of its first process

    def command(self, *command: object) -> list[str]:
        """A command line that runs there, with the variables of a fresh login."""
        enter = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid"]
        return [*enter, "env", "-i", f"HOME={HOME}", f"PATH={VENV}/bin:{os.defpath}:/usr/sbin", *map(str, command)]


def require_namespaces() -> None:
    """Skips the test where machines cannot be made."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("machines are made in namespaces, by root on Linux")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"{', '.join(missing)} not found: apt-get install iproute2 openssh-server rsync util-linux")
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"namespaces are not allowed here: {tried.stderr.strip()}")


@contextmanager
def machines(folder: Path, number: int) -> Iterator[list[Machine]]:
    """Makes machines that reach each other, also by ssh with the key `folder/key`, and nothing else."""
    (folder / "shared" / "shared").mkdir(parents=True)  # is /mnt/shared there
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    (folder / "sshd_config").write_text(SSHD.format(folder=folder))
    (folder / "passwd").write_text(f"{USER}:*:0:0::{HOME}:/bin/bash\n{Path('/etc/passwd').read_text()}")
    with ExitStack() as stack:
        switch = stack.enter_context(_process(["unshare", "--net", "--fork", "--kill-child", "sleep", "infinity"]))
        _inside(switch, "ip link add switch type bridge && ip link set switch up")
        made = []
        for host in range(1, number + 1):
            home = folder / f"home-{host}"
            _furnish(home)
            line = ["sh", "-c", START, "sh", str(folder), str(home), str(HOME)]
            namespaces = ["--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]
            pid = stack.enter_context(_process(["unshare", *namespaces, *line]))
            address = f"10.83.0.{host}"
            _inside(
                switch,
                f"ip link add to-{host} type veth peer name eth0 netns {pid} && ip link set to-{host} master switch up",
            )
            _inside(pid, f"ip addr add {address}/24 dev eth0 && ip link set eth0 up && ip link set lo up")
            # It leads nowhere, but by the route to the world, Ray tells which address is a machine's own.
            _inside(pid, "ip route add default dev eth0")
            made.append(Machine(address, home, pid))
        yield made


@contextmanager
def _process(command: list[str]) -> Iterator[int]:
    """Starts `unshare`, and yields the id of the process that it forks."""
    with subprocess.Popen(command) as started:
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
        try:
            while not (child := children.read_text().strip()):
                time.sleep(0.01)
            yield int(child)
        finally:
            started.kill()


def _inside(pid: int, script: str) -> None:
    subprocess.run(["nsenter", f"--target={pid}", "--net", "sh", "-c", script], check=True)


def _furnish(home: Path) -> None:
    """Makes a home with a virtual environment that has this one's packages, and the program `raysim` of ~/raysim."""
    shutil.copytree("/etc/skel", home)
    venv = home / VENV.name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = venv / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (packages / "all.pth").write_text(f"{sysconfig.get_path('purelib')}\n{HOME / 'raysim'}\n")
    for program, module in {"ray": "ray.scripts.scripts", "raysim": "raysim.cli.app"}.items():
        script = venv / "bin" / program
        script.write_text(f"#!{VENV}/bin/python\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        script.chmod(0o755)
    shutil.copy(ROOT / "deploy" / "requirements.txt", venv)
