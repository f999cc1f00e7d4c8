"""nginx, as a server behind the router under test."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from rig.waiting import await_true

PROGRAM = shutil.which("nginx") or "/usr/sbin/nginx"


class Nginx:
    """One process of nginx on a directory of its own, that listens where it is told."""

    def __init__(self, directory: Path, port: int, locations: str):
        temporary = "\n".join(
            f"{of}_temp_path {directory}/{of};"
            for of in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        self.configuration = directory / "nginx.conf"
        self.configuration.write_text(f"""
            daemon off; master_process off; worker_processes 1;
            pid {directory}/nginx.pid; error_log {directory}/error.log;
            events {{ worker_connections 256; }}
            http {{
                {temporary}
                access_log {directory}/access.log;
                types {{ text/html html; text/plain txt; }}
                gzip on; gzip_proxied any; gzip_types text/plain;
                server {{ listen 127.0.0.1:{port}; {locations} }}
            }}
        """)
        self.directory, self.port = directory, port
        command = [PROGRAM, "-e", "stderr", "-p", str(directory), "-c", str(self.configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        await_true("nginx runs", (directory / "nginx.pid").exists)

    def requests(self) -> list[str]:
        """Return the lines of its log."""
        return (self.directory / "access.log").read_text().splitlines()

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
