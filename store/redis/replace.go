package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Replace ends the replacement of one list of nodes by another, for when every
// client has both: urls and o name them as for Open, with Options.Next or next=
// in the URL. From now on nodes refuse clients that have the old list only; who
// holds a lock by it loses it and is told. After the longest TTL those are
// served that have the new list only, which is then what clients are to be given.
//
// It blocks for a little more than MaxTTL. A majority of each list has to
// answer. If it fails, or ctx ends, clients with both lists go on as before, and
// calling it again goes on from there; when all is done it changes nothing.
// progress is called at each step with what happens next, unless it is nil.
func Replace(ctx context.Context, urls []string, o *Options, progress func(string)) error {
	if err := mustBeIndependent("replace", urls); err != nil {
		return err
	}
	s, err := Open(ctx, urls, o)
	if err != nil {
		return err
	}
	defer s.Close()
	if progress == nil {
		progress = func(string) {}
	}
	if len(s.lists.next) == 0 {
		return errors.New("redis: name the nodes that replace the others: redis://a,b,c?next=a,b,d")
	}
	oldText, newText, _ := strings.Cut(s.lists.text, ">")
	_, newPrint, _ := strings.Cut(s.lists.print, ">")

	progress("clients that know " + oldText + " only are refused")
	if err := s.relist(ctx, s.lists.sets, s.lists.print, s.lists.text, newPrint); err != nil {
		return err
	}
	wait := s.quarantine()
	progress(fmt.Sprintf("waiting %v until none of them can have a lease", wait))
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	progress("clients that know " + newText + " only are served")
	return s.relist(ctx, [2]quorum.Set{s.lists.sets[1]}, newPrint, newText, newPrint)
}

// relist tells the nodes of some sets which list they are of, unless they are of
// the one that done stands for. It fails unless a majority of each set is told.
func (s *Store) relist(ctx context.Context, sets [2]quorum.Set, print, text, done string) error {
	c := new(command)
	b := appendWord(c.begin(relistScript), markKey)
	c.bytes = appendWord(appendWord(appendWord(b, print), text), done)
	var told quorum.Set
	nodes := make([]store.NodeOutcome, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i].Node = n.Addr()
		if !(sets[0] | sets[1]).Has(i) {
			continue
		}
		r := s.nodes[i].askOne(ctx, c)
		nodes[i].Outcome, nodes[i].Err = r.outcome, r.err
		switch {
		case r.outcome != store.Granted:
		case r.value.null:
			nodes[i].Outcome, nodes[i].Err = store.Quarantined, errors.New("it was emptied just now: try again")
		default:
			told |= quorum.SetOf(i)
		}
	}
	if cfg := (quorum.Config{Nodes: len(s.nodes), Sets: sets}); !cfg.Enough(told) {
		return &store.QuorumError{Op: "replace", Need: quorum.Majority(sets[0].Size()), Nodes: nodes}
	}
	return nil
}
