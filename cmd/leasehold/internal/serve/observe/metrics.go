package observe

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteMetrics writes what is known of the store, as text for Prometheus. now is the time that
// waits are counted to.
func (v *View) WriteMetrics(w io.Writer, now time.Time) error {
	var b strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP leasehold_store_%s %s\n# TYPE leasehold_store_%s %s\n", name, help, name, kind)
	}
	value := func(name, labels string, v any) { fmt.Fprintf(&b, "leasehold_store_%s%s %v\n", name, labels, v) }
	one := func(name, kind, help string, v any) {
		family(name, kind, help)
		value(name, "", v)
	}

	up := 0
	if v.ID > 0 && v.Err == nil {
		up = 1
	}
	one("up", "gauge", "1 if the last look at the store showed all locks.", up)
	if !v.SeenAt.IsZero() { // otherwise nothing is known
		leases, mayHold, inspected := 0, 0, 0
		for _, l := range v.Locks {
			for _, h := range l.Leases {
				if h.MayHold {
					mayHold++
				} else {
					leases++
				}
			}
			if !l.InspectedAt.IsZero() {
				inspected++
			}
		}
		waiting, oldest := Waiting(v.Locks, now)
		one("seen_age_seconds", "gauge", "The age of what is known of the locks.", now.Sub(v.SeenAt).Seconds())
		one("locks_held", "gauge", "The locks that are held, or may be held.", len(v.Locks))
		one("leases", "gauge", "The leases that hold a lock.", leases)
		one("leases_undecided", "gauge", "The leases of which it is undecided whether they hold a lock, since nodes do not answer.", mayHold)
		one("waiters", "gauge", "The waiters of the locks that were inspected, at most 100 of each lock.", waiting)
		one("oldest_wait_seconds", "gauge", "How long the first of the waiters has waited, by its own clock.", oldest.Seconds())
		one("locks_inspected", "gauge", "The locks that were inspected for waiters. All are, in turn.", inspected)
		if len(v.Nodes) > 0 {
			family("node_answers", "gauge", "1 if the node answered, and is not in quarantine.")
			for _, n := range v.Nodes {
				answers := 0
				if Well(n) {
					answers = 1
				}
				value("node_answers", fmt.Sprintf("{node=%s,outcome=%s}", label(n.Node), label(n.Outcome.String())), answers)
			}
		}
	}
	c := v.Counts
	one("looks_total", "counter", "The looks at the store.", c.Looks)
	one("looks_failed_total", "counter", "The looks that found nothing.", c.FailedLooks)
	family("changes_total", "counter", "What looks have seen of leases, by kind. A lease that began and ended between two looks is in none.")
	value("changes_total", `{kind="acquired"}`, c.Acquired)
	value("changes_total", `{kind="handed-over"}`, c.HandedOver)
	value("changes_total", `{kind="released"}`, c.Released)
	value("changes_total", `{kind="over"}`, c.Over)
	family("losses_total", "counter", "The leases that ended without a release, by cause.")
	value("losses_total", `{cause="expired"}`, c.LostExpired)
	value("losses_total", `{cause="broken"}`, c.LostBroken)
	one("breaks_total", "counter", "The leases that were broken.", c.Broken)
	_, err := io.WriteString(w, b.String())
	return err
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(s string) string { return `"` + escapes.Replace(strings.ToValidUTF8(s, "?")) + `"` }
