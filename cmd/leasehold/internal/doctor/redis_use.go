package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// rights reports which rights the user of the URL lacks, as far as that was
// tried.
func rights(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		for _, l := range n.Lacking {
			if l.Key != "" {
				r.add(Error, "key-forbidden", n.Node, "The user may not use keys like %s, without which it cannot lock (%s).", l.Key, l.Says)
			} else {
				r.add(Error, "right-missing", n.Node, "The user lacks +%s, without which it cannot lock (%s).", l.Command, l.Says)
			}
		}
		if s := n.Server; s.Replica || s.Loading || s.Mode == "cluster" || s.Mode == "sentinel" || full(s) {
			return // reason enough
		}
		if n.PushErr != nil && len(n.Lacking) == 0 {
			r.add(Warning, "waiters-poll", n.Node, "Waiters cannot be notified when a lock is free, and poll instead (%v).", n.PushErr)
		}
		if n.TrackingErr != nil && len(n.Lacking) == 0 {
			bad, which := Warning, ""
			if !several(e) {
				bad, which = Info, ", and locks that require crash-safe can have two owners until then"
			}
			r.add(bad, "replacement-unseen", n.Node, "If the server's data is replaced by that of another server (REPLICAOF), a client notices it only when it next connects (%v)%s.", n.TrackingErr, which)
		}
		for _, f := range n.Failing {
			r.add(Error, "script-fails", n.Node, "The script %q fails on a lock that nobody uses: %v.", f.Script, f.Err)
		}
	})
}

// times compares the round trips of nodes with the node timeout.
func times(r *report, e redisadmin.Examination) {
	if e.Limited && e.TTL > e.MaxTTL {
		r.add(Error, "ttl-over-maximum", "", "A TTL of %s is over the maximum of %s (max_ttl): locks with it are refused.", span(e.TTL), span(e.MaxTTL))
	}
	each(e, func(n redisadmin.Examined) {
		switch {
		case n.Trip > e.NodeTimeout:
			r.add(bearable(e), "round-trip-over-timeout", n.Node, "A round trip takes %s, and the node timeout is only %s at a TTL of %s: its vote comes too late.", span(n.Trip), span(e.NodeTimeout), span(e.TTL))
		case n.Slowest > e.NodeTimeout/2:
			r.add(Warning, "round-trip-near-timeout", n.Node, "A round trip takes up to %s, and the node timeout is only %s at a TTL of %s.", span(n.Slowest), span(e.NodeTimeout), span(e.TTL))
		}
	})
	// The majority decides, so what counts is the slowest of the quickest.
	trip := time.Duration(0)
	for _, l := range e.Memberships {
		var trips []time.Duration
		for _, i := range l {
			if n := e.Nodes[i]; n.Outcome == store.Granted {
				trips = append(trips, n.Trip)
			}
		}
		if len(trips) < majority(l) {
			return
		}
		slices.Sort(trips)
		trip = max(trip, trips[majority(l)-1])
	}
	if lost := trip + validity.Drift(e.TTL); lost > e.TTL/10 {
		r.add(Warning, "ttl-too-short", "", "With a TTL of %s, a grant has lost %s of its validity when it arrives (a round trip of %s, and the drift).", span(e.TTL), span(lost), span(trip))
	}
}

// apart is how far clocks may differ without any consequence: a token may lead
// the clock of a node by so much.
const apart = time.Second

// clocks is about the times of day. No lease depends on them, but tokens do:
// they follow the clock of a node.
func clocks(r *report, e redisadmin.Examination) {
	var first, last redisadmin.Examined // the furthest behind and ahead
	off, all := 0, 0                    // how many agree with each other and not with us
	each(e, func(n redisadmin.Examined) {
		if first.Node == "" || n.Ahead < first.Ahead {
			first = n
		}
		if last.Node == "" || n.Ahead > last.Ahead {
			last = n
		}
		if all++; n.Ahead.Abs()-n.AheadError > apart {
			off++
		}
	})
	if d := last.Ahead - first.Ahead; d-last.AheadError-first.AheadError > apart {
		r.add(Warning, "clocks-differ", "", "The clock of %s is ahead of that of %s by %s. Leases do not depend on it, but grants need a second round trip to agree on a token; and if the counters of a lock are lost, its tokens may go back.", last.Node, first.Node, span(d))
	} else if off > all/2 {
		way := "behind"
		if last.Ahead < 0 {
			way = "ahead of"
		}
		r.add(Warning, "clock-here", "", "This machine's clock is %s that of the servers by about %s. Leases do not depend on it; but grants may need a second round trip to agree on a token, and times that are shown are wrong.", way, span(last.Ahead.Abs()))
	}
}

// oddities say what each is, with %s for how many keys.
var oddities = map[redisadmin.Oddity]struct {
	severity Severity
	code     Code
	says     string
}{
	redisadmin.Endless:        {Error, "lock-without-ttl", "%s never expires: it was not made by a client that bounds its leases, and the lock of that name stays taken until somebody deletes it."},
	redisadmin.WrongType:      {Error, "lock-of-wrong-type", "%s holds something that is not a lock: the lock of that name cannot be taken."},
	redisadmin.Redisson:       {Error, "redisson-lock", "%s is a lock of Redisson, which keeps locks in another form: Leasehold waits for it, but Redisson fails with WRONGTYPE while Leasehold has a lock of that name."},
	redisadmin.Foreign:        {Info, "foreign-lock", "%s is held by another kind of client."},
	redisadmin.ForeignCounter: {Warning, "foreign-counter", "%s should count the tokens of a lock, and is not a number: the lock whose name is in braces cannot be taken."},
}

// keys reports unexpected data at the names of locks.
func keys(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		switch {
		case n.Server.Loading: // it says nothing yet
		case n.Keys.Err != nil:
			r.add(Info, "keys-not-seen", n.Node, "The keys of locks could not be read (%v).", n.Keys.Err)
		case n.Keys.Partial:
			r.add(Info, "keys-partly-seen", n.Node, "There are too many keys: the examination stopped after %s.", count(n.Keys.Locks, "lock"))
		}
		for _, odd := range n.Keys.Odd {
			o := oddities[odd.Oddity]
			r.add(o.severity, o.code, n.Node, strings.Replace(o.says, "%s", "%[1]s", 1), examples(odd))
		}
	})
}

// examples names the keys, or a few of them and their number.
func examples(odd redisadmin.OddKeys) string {
	var names []string
	for _, k := range odd.Examples {
		name := "key " + quoted(k.Key)
		if k.Says != "" {
			name += " (" + k.Says + ")"
		}
		names = append(names, name)
	}
	if odd.Count == 1 {
		return names[0]
	}
	return "each of " + count(odd.Count, "key") + ", such as " + strings.Join(names, ", ") + ","
}
