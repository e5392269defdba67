package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// Limits of a policy's content (upstream-contract 3.2 and 3.12).
const (
	MaxEncodedBytes     = 262_144
	maxFilesystemPaths  = 256
	maxPathBytes        = 4096
	maxMiddlewares      = 10
	maxSelectorPatterns = 32
	maxIdentity         = 1<<32 - 2 // a user or group id
)

// Validate applies the rules that upstream's gateway has for what a user may send. An error is an [*Error] with every
// breach; paths are those of the written form. Upstream answers INVALID_ARGUMENT.
//
// Not judged here, since it takes more than the policy: whether middlewares and providers exist, and whether rules of
// attached providers conflict.
func Validate(policy *sandboxv1.SandboxPolicy) error {
	var found problems
	validate(policy, &found)
	return found.err()
}

func validate(policy *sandboxv1.SandboxPolicy, found *problems) {
	var root *path
	if size := proto.Size(Canonical(policy)); size > MaxEncodedBytes {
		found.add(root, "the policy takes %d encoded bytes; a gateway takes at most %d", size, MaxEncodedBytes)
	}
	// Messages cannot tell a version left out from 0, so 0 stands for 1.
	if policy.GetVersion() > 1 {
		found.add(root.key("version"), "must be 1, not %d", policy.GetVersion())
	}
	validateFilesystem(policy.GetFilesystem(), root.key("filesystem_policy"), found)
	checkChoice(policy.GetLandlock().GetCompatibility(), compatibilities, root.key("landlock").key("compatibility"), found)
	validateIdentity(policy.GetProcess().GetRunAsUser(), root.key("process").key("run_as_user"), found)
	validateIdentity(policy.GetProcess().GetRunAsGroup(), root.key("process").key("run_as_group"), found)
	validateRules(policy, root.key("network_policies"), found)
	validateMiddlewares(policy, root.key("network_middlewares"), found)
}

func validateFilesystem(filesystem *sandboxv1.FilesystemPolicy, at *path, found *problems) {
	if count := len(filesystem.GetReadOnly()) + len(filesystem.GetReadWrite()); count > maxFilesystemPaths {
		found.add(at, "lists %d paths; at most %d are allowed", count, maxFilesystemPaths)
	}
	for i, p := range filesystem.GetReadOnly() {
		validatePath(p, at.key("read_only").item(i), found)
	}
	for i, p := range filesystem.GetReadWrite() {
		at := at.key("read_write").item(i)
		if p != "" && strings.Trim(p, "/") == "" {
			found.add(at, "must not be the root directory; list what the sandbox writes to")
			continue
		}
		validatePath(p, at, found)
	}
}

func validatePath(p string, at *path, found *problems) {
	if len(p) > maxPathBytes {
		found.add(at, "has %d bytes; a path has at most %d", len(p), maxPathBytes)
		return
	}
	if !strings.HasPrefix(p, "/") {
		found.add(at, "must start with /, not %s", show(p))
	}
	if climbs(p) {
		found.add(at, "must not contain .. in %s", show(p))
	}
}

// climbs reports whether a path leaves a directory upwards.
func climbs(p string) bool { return slices.Contains(strings.Split(p, "/"), "..") }

func validateIdentity(identity string, at *path, found *problems) {
	if identity == "" || identity == sandboxIdentity {
		return
	}
	if id, err := strconv.ParseUint(identity, 10, 32); err != nil || id == 0 || id > maxIdentity {
		found.add(at, "must be %q or a number from 1 to %d, not %s", sandboxIdentity, uint32(maxIdentity), show(identity))
	}
}

func checkChoice(value string, choices []string, at *path, found *problems) {
	if value != "" && !slices.Contains(choices, value) {
		found.add(at, "must be %s, not %s", oneOf(choices), show(value))
	}
}

func validateRules(policy *sandboxv1.SandboxPolicy, at *path, found *problems) {
	for _, key := range slices.Sorted(maps.Keys(policy.GetNetworkPolicies())) {
		at := at.key(key)
		if isProviderRule(key) {
			found.add(at, "keys that start with %s belong to the rules of attached providers; take the policy without them, or choose another key", providerRulePrefix)
		}
		for i, endpoint := range policy.GetNetworkPolicies()[key].GetEndpoints() {
			validateEndpoint(endpoint, at.key("endpoints").item(i), found)
		}
	}
}
