package sqlstore

import "github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"

// Queries are what reads more than a row by its key, what writes rows, and lists of every form.
func Queries(d Dialect) map[string]string {
	queries := map[string]string{
		"by name": d.rewrite(lockQuery("workspace = ? AND name = ?")), "by id": d.rewrite(lockQuery("id = ?")),
		"next due": d.rewrite(nextDueQuery), "claim": d.rewrite(claimDueQuery), "reschedule": d.rewrite(rescheduleQuery),
		"overdue": d.rewrite(overdueQuery), "update": d.rewrite(updateQuery), "remove": d.rewrite(removeQuery),
	}
	for name, q := range map[string]store.ListQuery{
		"list all": {}, "list one workspace": {Workspace: "w"},
		"list by label": {Labels: map[string]string{"a": "b"}}, "list by label of one workspace": {Workspace: "w", Labels: map[string]string{"a": "b"}},
		"list by labels": {Workspace: "w", Labels: map[string]string{"a": "b", "c": "d"}},
	} {
		first, _ := listQuery(q)
		q.After = &store.Cursor{}
		next, _ := listQuery(q)
		queries[name], queries[name+", next page"] = d.rewrite(first), d.rewrite(next)
	}
	for name, query := range map[string]string{
		"object": objectQuery(""), "child": childQuery(""), "held": heldQuery, "count": countQuery,
		"remove reference": removeReferenceQuery, "trim": trimQuery,
	} {
		queries[name] = d.rewrite(query)
	}
	for name, q := range map[string]store.ObjectQuery{
		"objects": {}, "objects of one workspace": {Workspaces: []string{"w"}}, "objects of one sandbox": {SandboxID: "s"},
		"objects by name": {ByName: true}, "objects of two workspaces by name": {Workspaces: []string{"", "w"}, ByName: true},
		"objects of one sandbox by name": {SandboxID: "s", ByName: true}, "the last objects of one sandbox": {SandboxID: "s", ByName: true, Reverse: true},
		"the last objects":  {ByName: true, Reverse: true},
		"objects by labels": {Workspaces: []string{"w"}, Labels: map[string]string{"a": "b", "c": "d"}},
	} {
		first, _ := objectsQuery(q)
		q.After = &store.Cursor{}
		next, _ := objectsQuery(q)
		queries[name], queries[name+", next page"] = d.rewrite(first), d.rewrite(next)
	}
	for name, query := range map[string]string{
		"admitted": admittedQuery, "admissions of a caller": countAdmissionsQuery, "settle": settleQuery, "withdraw": withdrawQuery,
		"settle audit": settleAuditQuery, "purge admissions": purgeAdmissionsQuery, "purge audit": purgeAuditQuery,
	} {
		queries[name] = d.rewrite(query)
	}
	for name, q := range map[string]store.AuditQuery{"audit": {}, "audit of one name": {Workspace: "w", Name: "n"}} {
		query, _ := auditQuery(q)
		queries[name] = d.rewrite(query)
	}
	workspaces, _ := workspacesQuery(store.WorkspaceQuery{Member: "m", Labels: map[string]string{"a": "b"}, After: &store.Cursor{}})
	queries["workspaces"] = d.rewrite(workspaces)
	return queries
}
