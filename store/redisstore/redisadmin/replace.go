package redisadmin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/operator"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Replace finishes the replacement of one membership by another. Call it when every
// client is configured with both: url and o name them as for Open, with Options.Next or
// next= in the URL. First the nodes begin to refuse clients that know the old membership
// only; a holder that such a client has loses its lease and is notified. After the
// longest TTL the nodes accept clients that know the new membership only, which can then
// be rolled out.
//
// Replace blocks for a little more than MaxTTL. It fails unless a majority of each
// membership and, in the end, every node of the new one has answered; the error names the
// nodes that did not. Those nodes would refuse clients that know the new membership only.
//
// If Replace fails or ctx ends, clients with both memberships go on as before, and
// calling Replace again resumes. It resumes even if the nodes of the old membership are
// gone by then, provided that a majority of them refused old clients before: the marks of
// the new nodes record that. Calling it after it has succeeded changes nothing. If
// progress is not nil, Replace calls it before each step with a description of the step;
// it must not block.
func Replace(ctx context.Context, url string, o *redisstore.Options, progress func(string)) error {
	if err := config.MustBeIndependent("replace", url); err != nil {
		return err
	}
	s, err := operator.Open(url, settingsOf(o), false)
	if err != nil {
		return err
	}
	defer s.Close()
	if progress == nil {
		progress = func(string) {}
	}
	list := s.Membership()
	if len(list.Next) == 0 {
		return config.Invalid(errors.New("redis: name the new nodes with next=: redis://a,b,c?next=a,b,d"))
	}
	r := replacement{Servers: s, list: list}
	r.oldText, r.newText, _ = strings.Cut(list.Text, ">")
	r.oldPrint, r.newPrint, _ = strings.Cut(list.Fingerprint, ">")
	return r.run(ctx, progress)
}

// replacement is the replacement of one membership by another.
type replacement struct {
	operator.Servers
	list              membership.List
	oldText, oldPrint string
	newText, newPrint string
}

func (r *replacement) run(ctx context.Context, progress func(string)) error {
	old, next := r.list.Sets[0], r.list.Sets[1]
	if err := r.Join(ctx); err != nil { // a server that was emptied has no mark to change
		return err
	}
	progress("clients that know " + r.oldText + " only will be refused")
	told := r.update(ctx, old|next, membership.SetCommand(r.list.Fingerprint, r.list.Text, r.newPrint, "", ""))
	if err := told.enough(next); err != nil {
		return err
	}
	switch {
	case told.finished >= quorum.Majority(next.Size()):
		// The wait took place when those nodes were updated.
	case told.enough(old) != nil && told.recorded < quorum.Majority(next.Size()):
		return told.enough(old)
	default:
		// Have the nodes of the new membership record that a majority of the old one was
		// updated, unless an earlier call did so. A later replacement in the other
		// direction updates a majority of them, which then record nothing.
		c := membership.SetCommand(r.list.Fingerprint, r.list.Text, r.newPrint, "", r.oldPrint)
		if err := r.update(ctx, next, c).enough(next); err != nil {
			return err
		}
		wait := r.Quarantine()
		progress(fmt.Sprintf("waiting %v until their leases have expired", wait))
		if !clock.Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
	progress("clients that know " + r.newText + " only will be accepted")
	return r.update(ctx, next, membership.SetCommand(r.newPrint, r.newText, r.newPrint, "", r.oldPrint)).all(next)
}

// markUpdates is the result of updating the marks of some nodes.
type markUpdates struct {
	asked, told quorum.Set
	nodes       []store.NodeOutcome
	// recorded counts the nodes that record that a majority of the old membership was
	// updated. finished counts those among them that belong to the new membership only.
	recorded, finished int
}

// update sends c to the nodes of a set.
func (r *replacement) update(ctx context.Context, to quorum.Set, c *script.Command) markUpdates {
	told := markUpdates{asked: to, nodes: make([]store.NodeOutcome, len(r.Addrs()))}
	for i, addr := range r.Addrs() {
		told.nodes[i].Node = addr
		if !to.Has(i) {
			continue
		}
		said := r.Ask(ctx, i, c)
		told.nodes[i].Outcome, told.nodes[i].Err = said.Outcome, said.Err
		if said.Outcome != store.Granted {
			continue
		}
		switch list := said.Value.List; {
		case len(list) == 3 && list[0].Num == 1:
			told.told |= quorum.SetOf(i)
			if !r.list.Sets[1].Has(i) || string(list[2].Text) != r.oldPrint {
				break
			}
			told.recorded++
			if string(list[1].Text) == r.newPrint {
				told.finished++
			}
		case len(list) == 2 && list[0].Num == 5:
			told.nodes[i] = script.OtherVersion(list[1])
			told.nodes[i].Node = addr
		case len(list) == 1:
			told.nodes[i].Outcome, told.nodes[i].Err = store.Quarantined, errors.New("it has just been emptied: try again")
		default:
			told.nodes[i].Outcome, told.nodes[i].Err = store.Refused, resp.Unexpected(said.Value)
		}
	}
	return told
}

// enough returns an error unless a majority of the set was updated.
func (t markUpdates) enough(set quorum.Set) error {
	return t.most(set, quorum.Majority(set.Size()))
}

// all returns an error unless every node of the set was updated.
func (t markUpdates) all(set quorum.Set) error {
	if err := t.most(set, set.Size()); err != nil {
		return fmt.Errorf("nodes that were not updated refuse clients that know the new membership only: replace the list again (leasehold replace, or Replace) when they are up: %w", err)
	}
	return nil
}

func (t markUpdates) most(set quorum.Set, need int) error {
	if (t.told & set).Size() >= need {
		return nil
	}
	var asked []store.NodeOutcome
	for i, n := range t.nodes {
		if t.asked.Has(i) {
			asked = append(asked, n)
		}
	}
	return &store.QuorumError{Op: "replace", Need: need, Nodes: asked}
}
