package policy

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// ChangeKind tells what a change asks of a running sandbox.
type ChangeKind int

const (
	// Unchanged means that the policies say the same.
	Unchanged ChangeKind = iota
	// Live covers network rules, middlewares and added filesystem paths, which a gateway takes at any time. Added paths
	// are stored at once and count from the workload's next start.
	Live
	// Replace means that a part which is fixed at the first start differs; it takes another sandbox.
	Replace
)

// Change is the way from one policy to another.
type Change struct {
	Kind ChangeKind
	// Reasons names the fields that differ. Where Kind is Replace they are the fixed ones only.
	Reasons []Problem
}

// Compare judges the change from the policy in force to the next one by their meaning. A fixed section that next leaves
// out counts as unchanged, since [FillStatic] takes it over. A policy that appears or goes needs a replacement: without
// one a sandbox gets its image's.
//
// Give it what was last written as current, not what a gateway serves as effective, which has more in it.
func Compare(current, next *sandboxv1.SandboxPolicy) Change {
	switch {
	case current == nil && next == nil:
		return Change{}
	case current == nil:
		return Change{Kind: Replace, Reasons: []Problem{{Message: "a policy is added where Terraform managed none"}}}
	case next == nil:
		return Change{Kind: Replace, Reasons: []Problem{{Message: "the policy is removed"}}}
	}
	next = FillStatic(next, current)
	before, after := resolved(current), resolved(next)
	var fixed, live problems
	compareFixed(before, after, &fixed)
	if len(fixed.kept) > 0 {
		return Change{Kind: Replace, Reasons: fixed.kept}
	}
	compareLive(before, after, &live)
	if len(live.kept) > 0 {
		return Change{Kind: Live, Reasons: live.kept}
	}
	return Change{}
}

// compareFixed looks at what is fixed at the first start; filesystem paths may be added.
func compareFixed(before, after *sandboxv1.SandboxPolicy, found *problems) {
	var root *path
	at, old, changed := root.key("filesystem_policy"), before.GetFilesystem(), after.GetFilesystem()
	if old.GetIncludeWorkdir() != changed.GetIncludeWorkdir() {
		found.add(at.key("include_workdir"), "changes from %t to %t", old.GetIncludeWorkdir(), changed.GetIncludeWorkdir())
	}
	removed := func(old, changed []string, at *path) {
		for _, p := range missing(old, changed) {
			found.add(at, "%s is removed", show(p))
		}
	}
	removed(old.GetReadOnly(), changed.GetReadOnly(), at.key("read_only"))
	removed(old.GetReadWrite(), changed.GetReadWrite(), at.key("read_write"))
	differ := func(old, changed string, at *path) {
		if old != changed {
			found.add(at, "changes from %s to %s", show(old), show(changed))
		}
	}
	differ(before.GetLandlock().GetCompatibility(), after.GetLandlock().GetCompatibility(), root.key("landlock").key("compatibility"))
	differ(before.GetProcess().GetRunAsUser(), after.GetProcess().GetRunAsUser(), root.key("process").key("run_as_user"))
	differ(before.GetProcess().GetRunAsGroup(), after.GetProcess().GetRunAsGroup(), root.key("process").key("run_as_group"))
}

func compareLive(before, after *sandboxv1.SandboxPolicy, found *problems) {
	var root *path
	at := root.key("filesystem_policy")
	added := func(old, changed []string, at *path) {
		for _, p := range missing(changed, old) {
			found.add(at, "%s is added", show(p))
		}
	}
	added(before.GetFilesystem().GetReadOnly(), after.GetFilesystem().GetReadOnly(), at.key("read_only"))
	added(before.GetFilesystem().GetReadWrite(), after.GetFilesystem().GetReadWrite(), at.key("read_write"))
	compareEntries(before.GetNetworkPolicies(), after.GetNetworkPolicies(), root.key("network_policies"), found)
	compareEntries(before.GetNetworkMiddlewares(), after.GetNetworkMiddlewares(), root.key("network_middlewares"), found)
}

func compareEntries[M proto.Message](before, after map[string]M, at *path, found *problems) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]M{}
	}
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		old, had := before[key]
		changed, has := after[key]
		switch {
		case !had:
			found.add(at.key(key), "is added")
		case !has:
			found.add(at.key(key), "is removed")
		case !sameMeaning(old, changed):
			found.add(at.key(key), "changes")
		}
	}
}

// missing lists what is in from but not in others.
func missing(from, others []string) []string {
	known := map[string]bool{}
	for _, other := range others {
		known[other] = true
	}
	var absent []string
	for _, p := range from {
		if !known[p] {
			absent = append(absent, p)
		}
	}
	return absent
}

// FillStatic returns next with the fixed sections of current wherever next leaves them out or means the same by them, to
// the letter: a gateway compares some of them by their wording, and takes a section left out for a change. Paths that
// next adds follow the current ones. The arguments are left as they are.
func FillStatic(next, current *sandboxv1.SandboxPolicy) *sandboxv1.SandboxPolicy {
	filled := proto.CloneOf(next)
	if current == nil || next == nil {
		return filled
	}
	before, after := resolved(current), resolved(next)
	if next.GetLandlock() == nil || proto.Equal(before.GetLandlock(), after.GetLandlock()) {
		filled.Landlock = proto.CloneOf(current.GetLandlock())
	}
	if next.GetProcess() == nil || proto.Equal(before.GetProcess(), after.GetProcess()) {
		filled.Process = proto.CloneOf(current.GetProcess())
	}
	if next.GetFilesystem() == nil || sameMeaning(before.GetFilesystem(), after.GetFilesystem()) {
		filled.Filesystem = proto.CloneOf(current.GetFilesystem())
		return filled
	}
	old, changed := before.GetFilesystem(), after.GetFilesystem()
	if old.GetIncludeWorkdir() == changed.GetIncludeWorkdir() && len(missing(old.GetReadOnly(), changed.GetReadOnly())) == 0 &&
		len(missing(old.GetReadWrite(), changed.GetReadWrite())) == 0 {
		filled.Filesystem = &sandboxv1.FilesystemPolicy{
			IncludeWorkdir: changed.GetIncludeWorkdir(),
			ReadOnly:       extend(current.GetFilesystem().GetReadOnly(), next.GetFilesystem().GetReadOnly(), cleanPath),
			ReadWrite:      extend(current.GetFilesystem().GetReadWrite(), next.GetFilesystem().GetReadWrite(), cleanPath),
		}
	}
	return filled
}

// extend appends what is not yet there, by a key that tells equals.
func extend(items, more []string, key func(string) string) []string {
	extended := slices.Clone(items)
	known := map[string]bool{}
	for _, item := range items {
		known[key(item)] = true
	}
	for _, item := range more {
		if k := key(item); !known[k] {
			known[k] = true
			extended = append(extended, item)
		}
	}
	return extended
}

// CheckLive applies a gateway's own rule for a policy that replaces another on a sandbox that has been active: by wording,
// as upstream does. The baseline is the policy of the sandbox's creation. Upstream answers INVALID_ARGUMENT; before the
// first activation everything may change.
func CheckLive(baseline, next *sandboxv1.SandboxPolicy) error {
	var found problems
	var root *path
	at := root.key("filesystem_policy")
	old, changed := baseline.GetFilesystem(), next.GetFilesystem()
	switch {
	case old == nil:
	case changed == nil:
		found.add(at, "cannot be removed from a live sandbox")
	default:
		if old.GetIncludeWorkdir() != changed.GetIncludeWorkdir() {
			found.add(at.key("include_workdir"), "cannot be changed on a live sandbox")
		}
		for _, p := range missing(old.GetReadOnly(), changed.GetReadOnly()) {
			found.add(at.key("read_only"), "%s cannot be removed from a live sandbox", show(p))
		}
		for _, p := range missing(old.GetReadWrite(), changed.GetReadWrite()) {
			found.add(at.key("read_write"), "%s cannot be removed from a live sandbox", show(p))
		}
	}
	if !proto.Equal(baseline.GetLandlock(), next.GetLandlock()) {
		found.add(root.key("landlock"), "cannot be changed on a live sandbox")
	}
	if !proto.Equal(baseline.GetProcess(), next.GetProcess()) {
		found.add(root.key("process"), "cannot be changed on a live sandbox")
	}
	return found.err()
}

func (k ChangeKind) String() string {
	switch k {
	case Unchanged:
		return "unchanged"
	case Live:
		return "live"
	case Replace:
		return "replace"
	default:
		return fmt.Sprintf("ChangeKind(%d)", int(k))
	}
}
