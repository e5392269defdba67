package store

// Precondition is what must hold for a conditional change. It is compared with the row inside the transaction that then
// writes the row, [Store.ChangeSandbox] or one with [Tx.Sandbox], and nowhere else.
type Precondition struct {
	// ID must be that of the row: a UUID in lower case, never empty.
	ID string
	// ResourceVersion must be that of the row; 0 asks for no comparison. It never stands for the id: every new row starts
	// counting from 1, so a replacement can carry the version that its predecessor had.
	ResourceVersion uint64
}

// CheckIdentity compares the id. The store itself calls it, before any [Decide] sees the row, so that no caller can
// forget it and nothing is said or done about a stranger.
func (p *Precondition) CheckIdentity(current Sandbox) error {
	if p != nil && p.ID != current.ID {
		return &IdentityMismatchError{Workspace: current.Workspace, Name: current.Name, ExpectedID: p.ID, CurrentID: current.ID}
	}
	return nil
}

// CheckVersion compares the version. A [Decide] calls it at its place in the order of its call: a sandbox that is being
// deleted already answers a delete alike at every version.
func (p *Precondition) CheckVersion(current Sandbox) error {
	if p != nil && p.ResourceVersion != 0 && p.ResourceVersion != current.ResourceVersion {
		return &VersionConflictError{
			Workspace: current.Workspace, Name: current.Name, ID: current.ID,
			Expected: p.ResourceVersion, Current: current.ResourceVersion,
		}
	}
	return nil
}
