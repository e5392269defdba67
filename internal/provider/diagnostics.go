package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

// report is the one shape of every message: what happened, to which sandbox if it is about one, what the state is now, and
// what to do.
type report struct {
	title string
	what  string
	ref   client.Ref
	// state says what became of Terraform's state; empty where it is not concerned.
	state string
	todo  string
	// at is the attribute at fault, if one is.
	at path.Path
}

// What became of the state.
const (
	stateKept    = "kept as it was."
	stateRemoved = "the sandbox was removed from it."
	stateHalf    = "holds what the gateway has changed; the next apply does what is left."
	stateTainted = "holds the sandbox and its id, marked as tainted: the next apply replaces it, a destroy removes it."
	stateNothing = "nothing was written to it."
)

// stateRm is the way out when a sandbox is gone for good and no gateway can prove it.
const stateRm = "forget it with \"terraform state rm ADDRESS\" (the address stands with this message)"

func (r report) detail() string {
	lines := []string{r.what, ""}
	if r.ref != (client.Ref{}) {
		where := fmt.Sprintf("Sandbox: name %q in workspace %q", r.ref.Name, r.ref.Workspace)
		if r.ref.ID != "" {
			where += ", id " + r.ref.ID
		}
		lines = append(lines, where+".")
	}
	if r.state != "" {
		lines = append(lines, "Terraform's state: "+r.state)
	}
	return strings.Join(append(lines, "What to do: "+r.todo), "\n")
}

func (r report) asError(diags *diag.Diagnostics) {
	if len(r.at.Steps()) > 0 {
		diags.AddAttributeError(r.at, r.title, r.detail())
		return
	}
	diags.AddError(r.title, r.detail())
}

// configFault is an argument of the provider that cannot be used. source says where its value comes from, unless that is the
// argument itself.
func configFault(attribute, source, problem, remedy string) report {
	at := path.Empty()
	for _, step := range strings.Split(attribute, ".") {
		at = at.AtName(step)
	}
	if source != "" {
		source = " (" + source + ")"
	}
	if remedy == "" {
		remedy = "correct it"
	}
	return report{
		title: "The provider's " + attribute + " cannot be used", what: fmt.Sprintf("%s%s: %s.", attribute, source, problem),
		state: "kept as it was; nothing was sent to a gateway.", todo: remedy + ".", at: at,
	}
}

func (r report) asWarning(diags *diag.Diagnostics) {
	if len(r.at.Steps()) > 0 {
		diags.AddAttributeWarning(r.at, r.title, r.detail())
		return
	}
	diags.AddWarning(r.title, r.detail())
}

// sentence makes an error's text the beginning of a message.
func sentence(err error) string {
	text := err.Error()
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// failure reports an error of the client. operation is one that timeouts names; empty where no time limit can be set.
func failure(title string, ref client.Ref, state, operation string, err error) report {
	return report{title: title, what: sentence(err), ref: ref, state: state, todo: advice(err, operation)}
}

// failure reports an error on the way of a sandbox that is in the state. What to do about a replacement depends on
// on_identity_mismatch.
func (d *providerData) failure(title string, ref client.Ref, state, operation string, err error) report {
	r := failure(title, ref, state, operation, err)
	if gone, ok := errors.AsType[*client.GoneError](err); ok && gone.Gone.CurrentID != "" && d.mismatchIsError {
		r.todo = replacedAdvice
	}
	return r
}

// advice is what to do about an error of the client.
func advice(err error, operation string) string {
	if _, ok := errors.AsType[*client.UnsupportedGatewayError](err); ok {
		return "upgrade the gateway to OpenShell 0.1, or point the provider's endpoint to one that is."
	}
	if _, ok := errors.AsType[*client.OtherGatewayError](err); ok {
		return "point the provider's endpoint (or " + envEndpoint + ") to the gateway the sandbox was created on. If that gateway or its database is gone for good, and the sandbox with it, " + stateRm + "."
	}
	if e, ok := errors.AsType[*client.UnprovenError](err); ok {
		if e.Err == nil {
			return "make sure that the provider's endpoint leads to the gateway the sandbox was created on. Where the sandbox exists, terraform apply -refresh-only by a caller with the scope workspace:read records the workspace's id. If the sandbox is gone for good, " + stateRm + "."
		}
		return "make sure that the workspace exists and that the provider's credentials give access to it, then run this again. If the workspace is gone for good, and the sandbox with it, " + stateRm + "."
	}
	if _, ok := errors.AsType[*client.GoneError](err); ok {
		if operation == "" { // there is nothing in the state
			return "run this again, if whatever has the name by then is meant."
		}
		return "run terraform plan: the refresh takes what is gone out of the state, and the plan shows a create."
	}
	if _, ok := errors.AsType[*client.UnansweredChangeError](err); ok {
		return "look at the gateway's log for whether it made the change, which may yet take effect, and run terraform plan: the refresh takes over what the sandbox shows by then, and the plan shows what is left. A gateway that is only slow gets more time with " + moreTime(operation) + "."
	}
	if _, ok := errors.AsType[*client.NotSupportedError](err); ok {
		return "use a gateway that offers these calls, or leave out what needs them."
	}
	if _, ok := errors.AsType[*client.MixedFleetError](err); ok {
		return mixedFleetAdvice(operation)
	}
	if _, ok := errors.AsType[*client.BrokenReplyError](err); ok {
		return "something between Terraform and the gateway changes or invents answers: look at proxies on the way and at the gateway's log."
	}
	if _, ok := errors.AsType[*client.DeleteUndoneError](err); ok {
		return "look at the gateway's log for why its compute driver gives the delete up, then destroy again."
	}
	if _, ok := errors.AsType[*client.PolicyError](err); ok {
		return "correct the policy and apply again. Until then the sandbox has no network, or runs under the revision before; that is a setting of the gateway."
	}
	if e, ok := errors.AsType[*client.WaitError](err); ok {
		return waitAdvice(e, operation)
	}
	if e, ok := errors.AsType[*client.FailedError](err); ok {
		if e.Observed.Phase == "deleting" {
			return "find out who deletes it. Once it is gone, terraform plan shows a create."
		}
		return "look at the reason above, the sandbox's image and command, and the gateway's log. Then apply again."
	}
	if unmade, ok := errors.AsType[*client.CredentialError](err); ok {
		if unmade.Remedy == "" {
			return "run this again."
		}
		return unmade.Remedy + "."
	}
	if call, ok := errors.AsType[*client.CallError](err); ok {
		return callAdvice(call, operation)
	}
	return "look at the gateway's log, then run this again."
}

func mixedFleetAdvice(operation string) string {
	text := "find the replica of the gateway, or the proxy on the way, that does not know openshell.conditional.v1, upgrade or bypass it, and run this again."
	if operation == "delete" {
		text += " allow_unconditional_delete is not used here: it is for gateways that do not offer the service."
	}
	return text
}

func waitAdvice(e *client.WaitError, operation string) string {
	switch {
	case !errors.Is(e.Err, context.Canceled):
		return "look at the gateway's log for what takes so long; " + moreTime(operation) + " gives it more time. Then run this again."
	case operation == "create": // the next one begins anew
		return "apply again."
	default:
		return "run this again; it goes on from where things stand."
	}
}

// moreTime is what to configure for an operation that is to take longer.
func moreTime(operation string) string { return fmt.Sprintf("timeouts = { %s = \"…\" }", operation) }

func callAdvice(call *client.CallError, operation string) string {
	if remedy := call.TLSRemedy(); remedy != "" {
		return remedy + " Then run this again."
	}
	if code := call.Code(); strings.HasSuffix(call.Call, "/UpdateSandboxConfig") && (code == codes.PermissionDenied || code == codes.NotFound) {
		return "changing a policy takes the scope config:write and an administrator of the workspace. A gateway may say NOT_FOUND to anybody else."
	}
	switch call.Code() {
	case codes.Unauthenticated:
		return "give the provider credentials that this gateway takes: token, token_file or oidc, the client certificate in tls, or the name of a gateway that the openshell command line is logged in to. A token may have expired, or be for another audience."
	case codes.PermissionDenied:
		return "give the caller access to the workspace and the scopes sandbox:read and sandbox:write (and workspace:read)."
	case codes.Unavailable, codes.DeadlineExceeded:
		reach := "make sure that " + call.Endpoint + " is the right endpoint, that the gateway is up, that http:// or https:// is what it speaks, and that the tls settings fit its certificate. Then run this again."
		if call.Code() == codes.DeadlineExceeded && operation != "" {
			reach += " A gateway that is only slow gets more time with " + moreTime(operation) + "."
		}
		return reach
	case codes.Unimplemented:
		return "make sure that " + call.Endpoint + " leads to an OpenShell gateway of version 0.1 and not to something else, such as a web server or proxy."
	case codes.NotFound:
		return "make sure that the workspace exists and that the provider's credentials give access to it."
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return "correct what the gateway names, then run this again."
	case codes.ResourceExhausted:
		return "the request is too large or a limit of the gateway is reached: make it smaller, or wait and run this again."
	default:
		return "look at the gateway's log, then run this again."
	}
}

// weakEvidence warns when an absence was believed on less than the workspace's id.
func weakEvidence(ref client.Ref, gone client.Gone, diags *diag.Diagnostics) {
	r := report{title: "It was not certain that the same gateway answered", ref: ref,
		todo: "make sure that the provider's endpoint leads to the gateway the sandbox was created on."}
	switch gone.Evidence {
	case client.StoodIn:
		r.what = "The gateway may not tell this caller the id of the workspace (scope workspace:read), which would show that it is the gateway the sandbox was created on. That the caller may list the workspace's sandboxes was taken instead."
		r.todo += " With the scope workspace:read the provider can tell."
	case client.NotRecorded:
		r.what = "The state holds no id of the workspace, which would show that the gateway is the one the sandbox was created on. That the workspace can be read was taken instead."
	default:
		return
	}
	r.asWarning(diags)
}

// goneWhat says how a sandbox is gone.
func goneWhat(ref client.Ref, gone client.Gone) string {
	if gone.CurrentID != "" {
		return fmt.Sprintf("The sandbox with id %s, which Terraform made, is gone. Its name now belongs to %s, which Terraform leaves alone.", ref.ID, gone.Holder())
	}
	return fmt.Sprintf("The sandbox with id %s is gone: somebody else deleted it, or the gateway did after it had finished.", ref.ID)
}

// replacedAdvice is what to do about a replacement where on_identity_mismatch asks for an error.
const replacedAdvice = "find out who replaced it, then " + stateRm + "; or set on_identity_mismatch = \"warn\" in the provider's configuration."

// replacedFault is a replacement where on_identity_mismatch asks for an error.
func replacedFault(ref client.Ref, gone client.Gone) report {
	return report{title: "The sandbox was replaced by another one", what: goneWhat(ref, gone), ref: ref, state: stateKept, todo: replacedAdvice}
}
