package zkstore

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// Notes about broken leases are below the node notesNode of the base. No name of a lock is
// escaped to that (see unescape). Each lock has one node there, which stays when the lock's own
// is removed. It says who broke the last lease, and which owners are refused. The data of
// notesNode itself name the owners whose leases were broken last, of any lock: clients watch
// it.
const notesNode = "%broken"

// notesMark is the data of the node of a lock that has notes. Clients read these only if it has data.
var notesMark = []byte(`{"broken":true}`)

// notes are the data of a lock's node there, the last break last.
type notes struct {
	Broken []broken `json:"broken"`
}

// broken is a lease that was broken.
type broken struct {
	Owner   string      `json:"owner"`
	Attempt string      `json:"attempt,omitempty"`
	Token   fence.Token `json:"token"`
	// Note is store.BreakRequest.Note. Only the last one has it.
	Note string `json:"note,omitempty"`
}

// mostNoted is how many broken leases of one lock are kept, and mostAnnounced how many
// owners are in the data of notesNode.
const (
	mostNoted     = 32
	mostAnnounced = 32
)

// add returns the notes with a further lease that was broken. The oldest ones are dropped.
func (n notes) add(b broken) notes {
	all := slices.Clone(n.Broken[max(0, len(n.Broken)+1-mostNoted):])
	for i := range all {
		all[i].Note = ""
	}
	return notes{append(all, b)}
}

// has reports whether the owner's lease with that token was broken.
func (n notes) has(owner string, token fence.Token) bool {
	return slices.ContainsFunc(n.Broken, func(b broken) bool { return b.Owner == owner && b.Token == token })
}

// refuses reports whether a lease of the attempt was broken. No attempt is made anew, so no clock says
// for how long it is refused.
func (n notes) refuses(owner, attempt string) bool {
	return slices.ContainsFunc(n.Broken, func(b broken) bool { return b.Owner == owner && b.Attempt == attempt })
}

// shown returns what is shown of the last lease that was broken, or nil. The notes were changed at that
// time, by the leader's clock.
func (n notes) shown(changed, now time.Time) *store.Broken {
	if len(n.Broken) == 0 || now.Sub(changed) > store.KeepBroken {
		return nil
	}
	last := n.Broken[len(n.Broken)-1]
	return store.DecodeBroken(last.Owner, last.Token, last.Note)
}

// announced are the data of notesNode: how many leases were broken, and the owners of the
// last ones, the last one last.
type announced struct {
	Count  int64    `json:"count"`
	Owners []string `json:"owners"`
}

// add returns the data after the lease of one more owner was broken.
func (h announced) add(owner string) announced {
	return announced{h.Count + 1, append(slices.Clone(h.Owners[max(0, len(h.Owners)+1-mostAnnounced):]), owner)}
}

// since returns the owners that were added after Count was count, as far as they are still
// listed. If Count is smaller now, the node was made anew.
func (h announced) since(count int64) []string {
	if h.Count < count {
		count = 0
	}
	added := min(h.Count-count, int64(len(h.Owners)))
	return h.Owners[int64(len(h.Owners))-max(0, added):]
}
