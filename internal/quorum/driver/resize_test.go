package driver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// A resize asks all nodes for the seat, and then to set the number. Its error says what each of
// them did, and whether the number may have changed.
func TestResizeAsksAllNodes(t *testing.T) {
	unsent := Reply{Kind: quorum.Unsent, Report: store.NodeOutcome{Outcome: store.Unreachable, Err: errors.New("it is down")}}
	unknown := Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.TimedOut, Err: errors.New("no answer")}}
	other := Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.WrongType, Err: &store.KindError{InUse: store.Semaphore(5), Holder: store.Holder{Owner: "x"}}}}
	three, two := store.Semaphore(3), store.Semaphore(2)
	for name, c := range map[string]struct {
		seats, sets [3]Reply
		want        error
		says        []string
	}{
		"done":                    {[3]Reply{yes, yes, yes}, [3]Reply{yes, yes, yes}, nil, nil},
		"a node is down":          {[3]Reply{yes, unsent, yes}, [3]Reply{}, store.ErrQuorum, []string{"3 of 3 nodes needed; node: granted; node: unreachable: it is down; node: granted; the number of permits is what it was"}},
		"another number":          {[3]Reply{yes, yes, other}, [3]Reply{}, store.ErrKindMismatch, []string{"in use as a semaphore of 5", "asked for as a semaphore of 3"}},
		"an answer is missing":    {[3]Reply{yes, yes, yes}, [3]Reply{yes, unknown, unsent}, store.ErrAmbiguous, []string{"node: granted; node: timed out: no answer; node: unreachable", "2 of 3 nodes may have 2 permits now", "repeat"}},
		"the number was set once": {[3]Reply{yes, yes, yes}, [3]Reply{yes, other, other}, store.ErrQuorum, []string{"1 of 3 nodes may have 2 permits"}},
	} {
		t.Run(name, func(t *testing.T) {
			k, nodes := askThree(func(node int, q Question) Reply {
				if q.Op == quorum.TakeSeat {
					return c.seats[node]
				}
				return c.sets[node]
			})
			r := Resizing{Who: "this", From: three, To: two, Seat: time.Minute, Keep: 2 * time.Minute}
			err := Resize(t.Context(), k, "a", r)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("resize: %v, want %v", err, c.want)
			}
			for _, says := range c.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("resize: %v\nwant it to say %q", err, says)
				}
			}
			for i, asked := range nodes.questions() {
				want := 1
				if c.sets[0].Report.Outcome == store.Granted {
					want = 2
				}
				if len(asked) != want || asked[0].Op != quorum.TakeSeat || asked[0].Resize != r || asked[0].Lease.Name != "a" || want == 2 && asked[1].Op != quorum.SetNumber {
					t.Errorf("node %d is asked %+v, want the seat, and to set the number if all have given it", i, asked)
				}
			}
		})
	}
}

// A resize that nobody waits for any more has an error that says so, and what it may have done.
func TestResizeIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k, _ := askThree(func(node int, q Question) Reply {
		if q.Op == quorum.SetNumber && node == 2 {
			cancel()
			<-t.Context().Done() // as if no answer came
		}
		return yes
	})
	err := Resize(ctx, k, "a", Resizing{From: store.Semaphore(3), To: store.Semaphore(2)})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "3 of 3 nodes may have 2 permits now") {
		t.Errorf("resize whose context ended: %v, want what the nodes did", err)
	}
}

// A renewal that was granted by nodes with different numbers of permits fails, and says which.
// A heal carries a number that the nodes have in common.
func TestRenewalByNodesWithDifferentNumbers(t *testing.T) {
	with := func(own, before int64) Reply {
		a := yes
		a.Numbers = quorum.Numbers{Own: own, Before: before}
		return a
	}
	r := store.Lease{Name: "a", Owner: "deploy", TTL: time.Minute, Kind: store.Semaphore(3), Weight: 1, Slots: "1"}
	k, _ := askThree(func(node int, q Question) Reply { return []Reply{with(3, 0), with(2, 0), absent}[node] })
	err := k.Renew(t.Context(), []store.Lease{r})[0]
	if !errors.Is(err, store.ErrQuorum) || errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), "it has 3 permits") || !strings.Contains(err.Error(), "it has 2 permits") {
		t.Errorf("renewal by nodes with 3 and with 2 permits: %v, want an error that says so", err)
	}
	healed := make(chan Question, 1)
	k, _ = askThree(func(node int, q Question) Reply {
		if q.Op == quorum.Heal {
			healed <- q
		}
		return []Reply{with(2, 3), with(2, 3), absent}[node]
	})
	if err := k.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
		t.Errorf("renewal by two nodes with 2 permits: %v", err)
	}
	if q := <-healed; q.Lease.Kind != store.Semaphore(2) || q.Lease.Slots != "1" {
		t.Errorf("the third node is sent %+v, want the lease with 2 permits", q)
	}
}
