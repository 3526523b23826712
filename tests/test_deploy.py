"""The files that start a team's server: compose, chart, unit and balancer say what exists and what
the schemas allow.

Helm itself is not a package of ours: the chart's templates fill values in and decide nothing, so
the few forms that they use are rendered here."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a package of their own

from bench.mcp_served import ROOT
from server.settings import SETTINGS_TABLE, Settings, read_settings

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm"
UNIT = DEPLOY / "winnow@.service"
TEMPLATES = sorted((CHART / "templates").glob("*.yaml"))
KUBERNETES = "1.34"
FORM = re.compile(r"\{\{ (?P<name>\.[\w.]+)(?P<json> \| toJson)? \}\}")
DEFAULT = re.compile(r"\$\{[A-Z_]+:?-([^}]*)\}")
"""A variable of the compose file, and what it is where deploy/.env does not set it."""
NAMES = {f"WINNOW_{setting.name.upper()}" for setting in SETTINGS_TABLE}


def rendered(template: Path, **settings: str) -> dict[str, Any]:
    """Return a template's manifest with the values of the chart, and a user's `settings`."""
    chart = loaded(CHART / "values.yaml")
    chart["settings"] |= settings
    values = {"Values": chart, "Release": {"Name": "team"}}

    def value(form: re.Match[str]) -> str:
        found: Any = values
        for name in form["name"].strip(".").split("."):
            found = found[name]
        return json.dumps(found) if form["json"] else str(found)

    text = FORM.sub(value, template.read_text(encoding="utf-8"))
    assert "{{ " not in text, "a form that only Helm can render"
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


def loaded(file: Path) -> dict[str, Any]:
    """Return what a YAML file says."""
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def manifest(name: str) -> dict[str, Any]:
    """Return one of the chart's manifests."""
    return rendered(CHART / "templates" / f"{name}.yaml")


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_every_manifest_of_the_chart_is_valid_under_its_schema(template: Path) -> None:
    made = rendered(template)
    assert made["metadata"]["name"] == "team"
    if made["apiVersion"].startswith("monitoring.coreos.com"):
        assert {"selector", "endpoints"} <= set(
            made["spec"]
        )  # an operator's own kind: no schema is at hand
        return
    validate = pytest.importorskip(
        "kubernetes_validate", reason="the schemas of Kubernetes are not installed"
    )
    validate.validate(made, KUBERNETES, strict=True)


def test_the_parts_of_the_chart_name_each_other() -> None:
    pod = manifest("deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert manifest("service")["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert {port["targetPort"] for port in manifest("service")["spec"]["ports"]} == set(ports)
    assert manifest("servicemonitor")["spec"]["endpoints"][0]["port"] in ports
    assert (
        manifest("servicemonitor")["spec"]["selector"]["matchLabels"]
        == manifest("service")["metadata"]["labels"]
    )
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] in {"/readyz", "/health"}
    assert settings_of_a_pod().http.metrics.endswith(f":{ports['metrics']}")
    assert pod["spec"]["terminationGracePeriodSeconds"] > settings_of_a_pod().seconds + 3


def settings_of_a_pod(**changed: str) -> Settings:
    """Return the settings with which a pod of the chart starts, where a user's values change
    some."""
    image = re.search(
        r"^ENV (.+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert image is not None
    pod = rendered(CHART / "templates" / "deployment.yaml", **changed)["spec"]["template"]
    given = {
        **rendered(CHART / "templates" / "config.yaml", **changed)["data"],
        **manifest("secret")["stringData"],
        **{one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]},
    }
    assert given.keys() <= NAMES
    return read_settings({}, dict(word.split("=") for word in shlex.split(image[1])) | given)


def test_pods_keep_no_session_to_themselves_whatever_a_user_adds() -> None:
    at = "https://winnow.example/mcp"
    settings = settings_of_a_pod(WINNOW_HTTP=f"issuer=https://login.example/ resource={at}")
    assert (settings.http.issuer, settings.http.resource) == ("https://login.example/", at)
    assert settings.http.stateless
    assert settings.http.metrics
    assert settings.folders == ()


def test_a_pod_of_the_chart_has_no_root_and_reaches_no_private_network() -> None:
    pod = manifest("deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    user = re.search(
        r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert user is not None
    assert int(user[1]) == pod["securityContext"]["runAsUser"]
    web = [
        rule
        for rule in manifest("networkpolicy")["spec"]["egress"]
        if any("ipBlock" in target for target in rule["to"])
    ]
    (block,) = [target["ipBlock"] for rule in web for target in rule["to"]]
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= set(
        block["except"]
    )
    assert {port["port"] for rule in web for port in rule["ports"]} == {80, 443}


def test_the_secrets_of_the_compose_file_do_not_get_into_the_image() -> None:
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    services = loaded(DEPLOY / "compose.yaml")["services"]
    assert services["winnow"]["env_file"] == [".env"]
    assert {DEPLOY.name, "**/.env"} <= set(left_out)


def test_compose_names_settings_and_files_that_exist() -> None:
    made = loaded(DEPLOY / "compose.yaml")
    services = made["services"]
    winnow = services["winnow"]
    assert {name for name in winnow["environment"] if name.startswith("WINNOW_")} <= NAMES
    assert set(winnow["depends_on"]) <= set(services)
    assert winnow["read_only"]
    assert (DEPLOY / winnow["build"] / "Dockerfile").is_file()
    assert (DEPLOY / "searxng.yml").is_file()
    assert "json" in loaded(DEPLOY / "searxng.yml")["search"]["formats"]
    fixed = {k: DEFAULT.sub(r"\1", v) for k, v in winnow["environment"].items()}
    assert not any("$" in value for value in fixed.values())
    read_settings(
        {name.removeprefix("WINNOW_").lower(): value for name, value in fixed.items()}, {}
    )
    hosts = {re.search(r"//([a-z]+):", value)[1] for value in fixed.values() if "//" in value}  # type: ignore[index]
    assert hosts <= set(services)
    assert {
        volume.partition(":")[0]
        for service in services.values()
        for volume in service.get("volumes", ())
    } & set(made["volumes"]) == set(made["volumes"])


def test_the_systemd_unit_starts_a_command_that_exists_with_settings_that_exist() -> None:
    unit = configparser.RawConfigParser(strict=False)  # systemd repeats EnvironmentFile
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd shows letters apart
    unit.read(UNIT, encoding="utf-8")
    service = unit["Service"]
    command = shlex.split(service["ExecStart"])
    assert command[0].endswith("/bin/winnow")
    assert command[1:3] == ["serve", "--http"]
    assert {pair.partition("=")[0] for pair in shlex.split(service["Environment"])} <= NAMES
    assert float(service["TimeoutStopSec"]) > read_settings({}, {}).seconds + 3


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)
def test_systemd_takes_the_unit_as_an_instance_for_each_port(tmp_path: Path) -> None:
    # The command is checked to exist, so one that does takes its place.
    text = UNIT.read_text(encoding="utf-8").replace("/opt/winnow/bin/winnow", sys.executable)
    instance = tmp_path / "winnow@8765.service"
    instance.write_text(text, encoding="utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(instance)],  # noqa: S607  the distribution's
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")
def test_haproxy_takes_the_balancers_configuration() -> None:
    checked = subprocess.run(
        ["haproxy", "-c", "-f", str(DEPLOY / "haproxy.cfg")],  # noqa: S607  the distribution's
        env={**os.environ, "BIND": "127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
