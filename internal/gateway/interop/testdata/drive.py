"""Drives reference gateways with OpenShell's own Python package, and prints what they did.

The gateways are registered the way OpenShell's command line registers them, in $XDG_CONFIG_HOME/openshell: "plaintext",
"mtls", "oidc" and "guarded", which refuses plain deletes. Tokens come in $INTEROP_TOKEN_*. Whatever a gateway does
otherwise than expected ends the run.
"""

import json
import os
import pathlib
import textwrap
from urllib.parse import urlparse

import openshell
from grpc import RpcError, StatusCode
from openshell import (
    ClientCredentialsAuth,
    DeletionOutcome,
    Sandbox,
    SandboxClient,
    ServiceExposure,
    TlsConfig,
    WorkspaceClient,
)
from openshell._proto import datamodel_pb2 as data
from openshell._proto import openshell_pb2 as api
from openshell._proto import sandbox_pb2 as sandbox

HOME = "default"


def main():
    print(f"openshell {openshell.__version__} (Python package)")
    for gateway in "plaintext", "mtls", "oidc":
        section(f"{gateway}: from nothing to nothing")
        with SandboxClient.from_active_cluster(cluster=gateway) as client:
            greet(client)
        context(gateway)
    section("oidc: tokens")
    tokens()
    with SandboxClient.from_active_cluster() as client:
        section("plaintext: sandboxes")
        sandboxes(client)
        section("plaintext: workspaces and members")
        workspaces(client)
        section("plaintext: provider profiles and providers")
        providers(client)
        section("plaintext: templates and services")
        templates(client)
        section("plaintext: policies, settings, watches and SSH sessions")
        configuration(client)
        section("plaintext: what is not served")
        unserved(client)
    section("guarded: plain deletes are refused")
    with SandboxClient.from_active_cluster(cluster="guarded") as client:
        guarded(client)
    print("\nAll as expected.")


def section(title):
    print(f"\n{title}")


def done(what, result=""):
    print(f"  {what:<36} {result}".rstrip())


def fail(what, got, want):
    raise SystemExit(f"  {what}: {got}, want {want}")


def expect(what, got, want):
    if got != want:
        fail(what, got, want)
    done(what, getattr(got, "name", got))


def refused(what, code, call, *args, reason="", field="", **kwargs):
    """Makes a call that must end with an error of this code, and perhaps with this detail."""
    try:
        call(*args, **kwargs)
    except RpcError as raw:
        error = openshell.from_grpc_error(raw)
        fields = [violation.field for violation in error.field_violations]
        if error.code() != code or reason and error.error_info.reason != reason or field and fields != [field]:
            fail(what, f"{error.code()} {error.error_info} {fields} {error.details()}", f"{code} {reason}{field}")
        done(what, f"{code.name} {reason}{field}")
    else:
        fail(what, "no error", code)


def greet(client):
    version = client.health().version
    if not version.startswith("0.1."):
        fail("health", version, "0.1.x")
    me = client._stub.GetCurrentUser(api.GetCurrentUserRequest())
    done("health", version)
    done("who am I", f"{me.subject}, {', '.join(me.roles)}, by {me.identity_provider}")


def context(gateway):
    with Sandbox(workspace=HOME, cluster=gateway) as box:
        left = box.sandbox
        done("enter a sandbox, ready", left.name)
        refused("exec", StatusCode.UNIMPLEMENTED, box.exec, ["true"])
    with SandboxClient.from_active_cluster(cluster=gateway) as client:
        refused("leave it, and get it", StatusCode.NOT_FOUND, client.get, left.name, workspace=HOME)


def tokens():
    robot = ClientCredentialsAuth(client_secret=os.environ["INTEROP_CLIENT_SECRET"])
    with SandboxClient.from_active_cluster(cluster="oidc", client_credentials=robot) as client:
        me = client._stub.GetCurrentUser(api.GetCurrentUserRequest())
        expect("client credentials, who am I", me.subject, "robot")
    with oidc("admin") as client:
        member = api.AddWorkspaceMemberRequest(workspace_scope=scope(HOME), principal_subject="reader", role=api.WORKSPACE_ROLE_USER)
        client._stub.AddWorkspaceMember(member)
    with oidc("reader") as client:
        expect("list as a reader", client.list_all(workspace=HOME), [])
        refused("create as a reader", StatusCode.PERMISSION_DENIED, client.create, workspace=HOME)
    with oidc("stranger") as client:
        refused("list as a stranger", StatusCode.PERMISSION_DENIED, client.list_all, workspace=HOME)
        refused("get as a stranger", StatusCode.NOT_FOUND, client.get, "web", workspace=HOME)
    for credential in "expired", None:
        with oidc(credential) as client:
            refused(f"list, {credential or 'no'} token", StatusCode.UNAUTHENTICATED, client.list_all, workspace=HOME)


def oidc(token):
    """A client with a token of its own."""
    registration = pathlib.Path(os.environ["XDG_CONFIG_HOME"], "openshell", "gateways", "oidc")
    endpoint = json.loads((registration / "metadata.json").read_text())["gateway_endpoint"]
    return SandboxClient(
        urlparse(endpoint).netloc,
        tls=TlsConfig(ca_path=registration / "mtls" / "ca.crt"),
        bearer_token=token and os.environ[f"INTEROP_TOKEN_{token.upper()}"],
    )


def scope(workspace):
    return data.WorkspaceSelector(workspace=workspace)


def names(items):
    return ", ".join(item.name for item in items)


def sandboxes(client):
    first = client.create(workspace=HOME, name="web", labels={"app": "web"})
    client.create(workspace=HOME, name="db")
    expect("create, wait ready", client.wait_ready("web", workspace=HOME).id, first.id)
    expect("get", dict(client.get("web", workspace=HOME).labels), {"app": "web"})
    expect("list, pages of one", names(item for page in client.list(workspace=HOME, page_size=1) for item in page.items), "web, db")
    expect("list by label", names(client.list_all(workspace=HOME, label_selector="app=web")), "web")
    expect("list all workspaces", names(client.list_all_for_all_workspaces()), "web, db")
    refused("create what there is", StatusCode.ALREADY_EXISTS, client.create, workspace=HOME, name="web")
    refused("create with a bad name", StatusCode.INVALID_ARGUMENT, client.create, workspace=HOME, name="-", field="name")

    client.stop("web", workspace=HOME)
    expect("stop, wait stopped", client.wait_stopped("web", workspace=HOME).id, first.id)
    client.start("web", workspace=HOME)
    expect("start, wait ready", client.wait_ready("web", workspace=HOME).id, first.id)

    gone = client.delete("web", workspace=HOME)
    expect("delete", gone.sandbox_id, first.id)
    client.wait_deleted("web", workspace=HOME, expected_sandbox_id=first.id)
    refused("wait deleted, delete", StatusCode.NOT_FOUND, client.delete, "web", workspace=HOME)
    again = client.delete("web", workspace=HOME, allow_missing=True)
    expect("delete, missing or not", again.outcome, DeletionOutcome.ALREADY_ABSENT)
    second = client.create(workspace=HOME, name="web")
    client.wait_deleted("web", workspace=HOME, expected_sandbox_id=first.id)
    done("wait deleted, the name is another's", second.id)
    for name in "web", "db":
        client.wait_ready(name, workspace=HOME)
        client.delete(name, workspace=HOME)
        client.wait_deleted(name, workspace=HOME)


def workspaces(client):
    teams = WorkspaceClient.from_sandbox_client(client)
    expect("create, get", teams.create("team", labels={"a": "b"}), teams.get("team"))
    expect("list", names(teams.list_all()), "default, team")
    stub, team = client._stub, scope("team")
    stub.AddWorkspaceMember(api.AddWorkspaceMemberRequest(workspace_scope=team, principal_subject="ann", role=api.WORKSPACE_ROLE_ADMIN))
    members = stub.ListWorkspaceMembers(api.ListWorkspaceMembersRequest(workspace_scope=team)).members
    expect("add and list a member", [member.principal_subject for member in members], ["ann"])
    stub.RemoveWorkspaceMember(api.RemoveWorkspaceMemberRequest(workspace_scope=team, principal_subject="ann"))
    client.create(workspace="team", name="web")
    client.wait_ready("web", workspace="team")
    refused("delete while a sandbox is in it", StatusCode.FAILED_PRECONDITION, teams.delete, "team")
    refused("create another one in it", StatusCode.FAILED_PRECONDITION, client.create, workspace="team")
    client.delete("web", workspace="team")
    client.wait_deleted("web", workspace="team")
    expect("delete", teams.delete("team").outcome, DeletionOutcome.COMPLETED)
    refused("get", StatusCode.NOT_FOUND, teams.get, "team")


def providers(client):
    stub, home = client._stub, scope(HOME)
    profile = api.ProviderProfile(
        id="forge", display_name="Forge", category=api.PROVIDER_PROFILE_CATEGORY_SOURCE_CONTROL,
        credentials=[api.ProviderProfileCredential(name="token", env_vars=["FORGE_TOKEN"], required=True)],
    )
    imported = stub.ImportProviderProfiles(api.ImportProviderProfilesRequest(workspace_scope=home, profiles=[{"profile": profile}]))
    expect("import a profile", imported.imported, True)
    provider = data.Provider(metadata={"name": "forge"}, type="forge", profile_workspace=HOME, credentials={"FORGE_TOKEN": "secret"})
    stub.CreateProvider(api.CreateProviderRequest(workspace_scope=home, provider=provider))
    kept = stub.GetProvider(api.GetProviderRequest(workspace_scope=home, name="forge")).provider
    expect("create a provider, get it", dict(kept.credentials), {"FORGE_TOKEN": "REDACTED"})
    refused("create it again", StatusCode.ALREADY_EXISTS, stub.CreateProvider, api.CreateProviderRequest(workspace_scope=home, provider=provider))
    kept.config["host"] = "forge.example.com"
    kept = stub.UpdateProvider(api.UpdateProviderRequest(workspace_scope=home, provider=kept)).provider
    expect("update it", dict(kept.config), {"host": "forge.example.com"})

    web = client.create(workspace=HOME, name="web")
    client.wait_ready("web", workspace=HOME)
    link = {"workspace_scope": home, "sandbox": "web", "provider": "forge"}
    expect("attach it", stub.AttachSandboxProvider(api.AttachSandboxProviderRequest(**link)).attached, True)
    attached = stub.ListSandboxProviders(api.ListSandboxProvidersRequest(workspace_scope=home, sandbox="web")).providers
    expect("list those of the sandbox", [item.metadata.name for item in attached], ["forge"])
    delete = api.DeleteProviderRequest(workspace_scope=home, name="forge")
    refused("delete it while attached", StatusCode.FAILED_PRECONDITION, stub.DeleteProvider, delete)
    stale = api.DetachSandboxProviderRequest(expected_resource_version=99, **link)
    refused("detach from another version", StatusCode.ABORTED, stub.DetachSandboxProvider, stale, reason="RESOURCE_VERSION_CONFLICT")
    expect("detach it", stub.DetachSandboxProvider(api.DetachSandboxProviderRequest(**link)).detached, True)
    expect("delete it", DeletionOutcome(stub.DeleteProvider(delete).outcome), DeletionOutcome.COMPLETED)
    stub.DeleteProviderProfile(api.DeleteProviderProfileRequest(workspace_scope=home, id="forge"))
    client.delete("web", workspace=HOME)
    client.wait_deleted("web", workspace=HOME, expected_sandbox_id=web.id)


def templates(client):
    catalog = client.sandbox_templates()
    catalog.create(workspace=HOME, name="small", image="busybox", cpu="500m", memory="1Gi", environment={"A": "b"})
    expect("create a template, get it", catalog.get("small", workspace=HOME).spec.workload.image, "busybox")
    expect("list templates", [template.metadata.name for template in catalog.list_all(workspace=HOME)], ["small"])
    web = client.create_from_template(workspace=HOME, workload_template="small", name="web", service_exposures=[ServiceExposure(8080, "http")])
    expect("create from it, with a service", web.created_from_workload_template.name, "small")
    expect("URLs of the sandbox", list(web.service_urls), ["http"])
    stub, http = client._stub, {"workspace_scope": scope(HOME), "sandbox": "web", "name": "http"}
    moved = stub.ExposeService(api.ExposeServiceRequest(target_port=8081, **http)).endpoint
    expect("move the service", stub.GetService(api.GetServiceRequest(**http)).endpoint.target_port, moved.target_port)
    services = stub.ListServices(api.ListServicesRequest(workspace_scope=scope(HOME), sandbox="web")).services
    expect("list services", [service.endpoint.name for service in services], ["http"])
    expect("delete it", DeletionOutcome(stub.DeleteService(api.DeleteServiceRequest(**http)).outcome), DeletionOutcome.COMPLETED)
    expect("delete the template", catalog.delete("small", workspace=HOME).outcome, DeletionOutcome.COMPLETED)
    refused("create from it", StatusCode.NOT_FOUND, client.create_from_template, workspace=HOME, workload_template="small")
    client.wait_ready("web", workspace=HOME)


def configuration(client):
    stub, web = client._stub, {"workspace_scope": scope(HOME), "sandbox": "web"}
    policy = sandbox.SandboxPolicy(version=1)
    policy.network_policies["forge"].endpoints.add(host="forge.example.com", ports=[443])
    policy.network_policies["forge"].binaries.add(path="/usr/bin/git")
    stub.UpdateConfig(api.UpdateConfigRequest(policy=policy, **web))
    revision = stub.GetSandboxPolicyStatus(api.GetSandboxPolicyStatusRequest(**web)).revision
    expect("set a policy, read it", list(revision.policy.network_policies), ["forge"])
    setting = {"setting_key": "ocsf_json_enabled", "setting_value": {"bool_value": True}}
    stub.UpdateConfig(api.UpdateConfigRequest(**setting, **web))
    config = stub.GetSandboxConfig(sandbox.GetSandboxConfigRequest(workspace_scope=scope(HOME), name="web"))
    expect("set a setting, read it", config.settings["ocsf_json_enabled"].value.bool_value, True)
    refused("set one there is not", StatusCode.INVALID_ARGUMENT, stub.UpdateConfig, api.UpdateConfigRequest(**{**setting, "setting_key": "none"}, **web))

    session = stub.CreateSshSession(api.CreateSshSessionRequest(**web))
    done("SSH session, to", f"{session.gateway_scheme}://{session.gateway_host}:{session.gateway_port}")
    refused("connect with it", StatusCode.UNIMPLEMENTED, list, stub.ForwardTcp(iter([api.TcpForwardFrame()])))
    revoked = stub.RevokeSshSession(api.RevokeSshSessionRequest(token=session.token))
    expect("revoke it", DeletionOutcome(revoked.outcome), DeletionOutcome.COMPLETED)

    events = stub.WatchSandbox(api.WatchSandboxRequest(follow_status=True, **web))
    expect("watch, first", api.SandboxPhase.Name(next(events).sandbox.status.phase), "SANDBOX_PHASE_READY")
    client.delete("web", workspace=HOME)
    phases = [event.sandbox.status.phase for event in events]
    expect("delete, and the watch ends", set(phases) <= {api.SANDBOX_PHASE_DELETING}, True)


def unserved(client):
    """Calls every method of the API with an empty request, which none that is served takes for an order."""
    lacking = []
    for method in api.DESCRIPTOR.services_by_name["OpenShell"].methods:
        call = client._channel.stream_stream(f"/openshell.v1.OpenShell/{method.name}")
        try:
            list(call(iter([b""]), timeout=10))
        except RpcError as error:
            if error.code() == StatusCode.UNIMPLEMENTED:
                lacking.append(method.name)
    print(textwrap.fill(", ".join(lacking), 100, initial_indent="  ", subsequent_indent="  "))


def guarded(client):
    web = client.create(workspace=HOME, name="web")
    client.wait_ready("web", workspace=HOME)
    for call in client.delete, client.stop, client.start:
        refused(call.__name__, StatusCode.FAILED_PRECONDITION, call, "web", workspace=HOME, reason="PRECONDITION_REQUIRED")
    expect("get", client.get("web", workspace=HOME).id, web.id)


main()
