package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func breakCommand(p *program) *cobra.Command {
	r := leasehold.BreakRequest{}
	token := uint64(0)
	c := &cobra.Command{
		Use:   "break NAME --token TOKEN --reason TEXT",
		Short: "Take a lock away from a holder that hangs",
		Long: `Breaks the lease that holds the lock NAME with TOKEN, and waits until it is over. TOKEN
is what "leasehold show NAME" prints: it makes sure that you take the lock from the
holder that you saw, and not from the next one. If the lock is held with another token,
nothing is done, and the exit code is 124. A lease that "show" prints as one that may be
held is broken like any other.

The lease cannot be renewed any more. The holder learns of that at once on Redis, etcd
and ZooKeeper and in a file; on other stores, or if that message is lost, at its next
renewal, a third of its TTL after the last one. Then it stops: a command under
"leasehold run" gets SIGTERM, and SIGKILL after its --grace. The lock is free when the
holder has released it, or when its lease expires if the holder is dead, frozen or cut
off; "show" prints when that is. So the holder is notified before anybody else can have
the lock.

With --now the lock is free at once, and goes to the first waiter. The holder may not
learn of that before its next renewal, or, if it is frozen, before it runs again. Until
then two processes may work at once: only a resource that checks fencing tokens is safe.
Use --now if you know that the holder is gone.

If you end the wait (Ctrl-C), the lease stays broken, and the lock becomes free in the
same way. For a day, "leasehold show" says who broke the lease, when and why.

If several holders have the same token, as readers do, --owner says which is meant.

Exit codes: 0 if the lease is over, also if it was broken before; 123 if nobody holds
the lock, so that there was nothing to break: NAME may be mistyped, or the lease has
ended; 124 if the lock is held with another token, or may be; 125 if leasehold itself
failed, for example because the store cannot break a lease; 128+N if signal N ended the
wait.`,
		Example: `  leasehold show deploy
  leasehold break deploy --token 1764000000000000 --reason "hangs since the upgrade"
  leasehold break deploy --token 1764000000000000 --reason "its host is gone" --now`,
		Args:              oneName,
		ValidArgsFunction: p.completeOneName,
		RunE: func(c *cobra.Command, args []string) error {
			r.Name, r.Token = args[0], fence.Token(token)
			return breakLease(p, c, r)
		},
	}
	f := c.Flags()
	f.Uint64Var(&token, "token", 0, "the fencing `TOKEN` of the lease to break")
	f.StringVar(&r.Owner, "owner", "", "the `OWNER` of the lease, if several have that token")
	f.StringVar(&r.Reason, "reason", "", "`TEXT` for \"leasehold show\": why the lease is broken")
	f.StringVar(&r.By, "by", "", "`TEXT` for \"leasehold show\": who broke it (default: your user and host)")
	f.BoolVar(&r.Now, "now", false, "free the lock at once; only fencing tokens protect then")
	completeHolders(p, c, "token", func(h store.Holding) string { return h.Token.String() })
	completeHolders(p, c, "owner", func(h store.Holding) string { return h.Holder.Owner })
	return c
}

// breakLease runs "leasehold break".
func breakLease(p *program, c *cobra.Command, r leasehold.BreakRequest) error {
	switch {
	case store.CheckName(r.Name) != nil:
		return store.CheckName(r.Name)
	case r.Token == 0:
		return usage(c, "give --token, as \"leasehold show\" prints it")
	case r.Reason == "":
		return usage(c, "give --reason: the holder will ask")
	case !c.Flags().Changed("by"):
		r.By = ourselves()
	}
	told := false
	r.OnWait = func(reason error) {
		var busy *leasehold.BusyError
		if !told && errors.As(reason, &busy) {
			told = true
			p.voice.Note("broken: the lease cannot be renewed any more; lock %q is free when its holder, %s, has learned of that and has stopped, or in %s if it does not", r.Name, busy.Holder, voice.Brief(busy.ExpiresIn))
		}
	}
	ctx, stop := listen().during(context.Background())
	err := askWith(p, ctx, c, false, func(ctx context.Context, st *store.Store) error { return client(p, st).Operator().Break(ctx, r) })
	sig := stop()
	switch {
	case sig != 0 && told:
		p.voice.Note("the lease stays broken, and the lock becomes free without this command")
		fallthrough
	case sig != 0:
		return endedBy(sig)
	case errors.Is(err, leasehold.ErrBusy):
		return &exitError{code: codeBusy, err: err}
	case errors.Is(err, leasehold.ErrNotHeld):
		return &exitError{code: runner.CodeLost, err: err}
	case err != nil:
		return err
	case r.Now:
		p.voice.Note("the lease with token %v is over; its holder may not know of that before its next renewal, so until then only fencing tokens protect what the lock protects", r.Token)
	default:
		p.voice.Note("the lease with token %v is over", r.Token)
	}
	return nil
}

// ourselves names the user who runs the command, for people.
func ourselves() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		return fmt.Sprintf("%s on %s", name, host)
	}
	return name
}
