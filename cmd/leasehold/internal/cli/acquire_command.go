package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lockview"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func acquireCommand(p *program) *cobra.Command {
	o := runFlags{busyCode: codeBusy}
	asJSON := false
	c := &cobra.Command{
		Use:   "acquire NAME --ttl TIME",
		Short: "Acquire a lock for a script, without renewing it",
		Long: `Waits for the lock NAME, acquires it for --ttl, prints the owner value and the
fencing token on one line, and exits. "leasehold release NAME --owner OWNER" ends the
lease. It is for scripts that cannot wrap what they do into "leasehold run", which is
better wherever it is possible:

  - Nothing renews the lease. When --ttl is over, the store gives the lock to others,
    whether or not the script still works.
  - Nothing stops the script then. Leave a margin, and pass the token to what the lock
    protects, so that it can refuse late writes.
  - If the script dies, the lock stays taken until --ttl is over.

The lease counts from the moment the request was sent. With --json the command prints
one object with name, owner, token, slot (only of a semaphore: the number of this
holder, from 0), and valid_until: the time, by this machine's clock, until which the
lock is certainly held (RFC 3339). It is a little before --ttl is over.

If the line cannot be printed, the lock is released again.

Exit codes: 0 if the lock is held, 124 if someone else holds it (with --try, or after
--wait), 125 if leasehold itself failed, and 128+N if signal N ended the wait.`,
		Example: `  lease=$(leasehold acquire deploy --ttl 10m --wait 1m) || exit
  ./step-one && ./step-two "${lease#* }"         # the fencing token
  leasehold release deploy --owner "${lease% *}" # the owner`,
		Args:              oneName,
		ValidArgsFunction: p.completeOneName,
		RunE:              func(c *cobra.Command, args []string) error { return acquireOnly(p, c, o, args[0], asJSON) },
	}
	f := c.Flags()
	f.DurationVar(&o.ttl, "ttl", 0, "how long to hold the lock, unless it is released: a `TIME` such as 10m")
	o.addWaiting(f)
	o.kindFlags.add(f)
	o.addDescription(f)
	f.Lookup("purpose").Usage = "`TEXT` shown to others who want the lock (default: leasehold acquire)"
	f.BoolVar(&asJSON, "json", false, "print JSON")
	completeClasses(c)
	return c
}

// acquireOnly runs "leasehold acquire".
func acquireOnly(p *program, c *cobra.Command, o runFlags, name string, asJSON bool) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	require, err := o.settleWaiting(c)
	switch {
	case err != nil:
	case o.kindFlags.check(c) != nil:
		err = o.kindFlags.check(c)
	case !c.Flags().Changed("ttl"):
		err = errors.New("give --ttl: nothing renews the lock, so it says how long the lock is held")
	case o.ttl < leastTTL:
		err = fmt.Errorf("--ttl %v is too short to be of use: the minimum is %v", o.ttl, leastTTL)
	}
	if err != nil {
		return usage(c, "%w", err)
	}
	if !c.Flags().Changed("purpose") {
		o.purpose = "leasehold acquire"
	}
	st, l, err := p.acquire(c, o, listen(), name, leasehold.LockOptions{
		TTL: o.ttl, NoRenew: true, Purpose: o.purpose, Require: require,
	})
	if err != nil {
		return err
	}
	held := l.each[0]
	if err = printLease(p, held, o.permits > 1, asJSON); err != nil { // nobody would know whose it is
		err = errors.Join(fmt.Errorf("printing the owner: %w", err), held.Release(context.Background()))
	}
	return errors.Join(err, st.Close())
}

// leaseJSON is a lease that was acquired, as "leasehold acquire --help" describes it.
type leaseJSON struct {
	statejson.LockName
	Owner      string      `json:"owner"`
	Token      fence.Token `json:"token"`
	Slot       *int        `json:"slot,omitempty"`
	ValidUntil time.Time   `json:"valid_until"`
}

func printLease(p *program, lease *leasehold.Lease, numbered, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintln(p.stdout, lease.Owner(), lease.Token())
		return err
	}
	j := leaseJSON{LockName: statejson.NameOf(lease.Name()), Owner: lease.Owner(), Token: lease.Token(), ValidUntil: lease.Deadline().UTC()}
	if slot := lease.Slot(); numbered {
		j.Slot = &slot
	}
	return lockview.WriteJSON(p.stdout, j)
}
