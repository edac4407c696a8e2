package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// The variables that a command finds in its environment, and that leasehold
// finds in its own when it runs under another leasehold.
const (
	nameVar     = "LEASEHOLD_NAME"
	tokenVar    = "LEASEHOLD_TOKEN"
	tokensVar   = "LEASEHOLD_TOKENS"
	slotVar     = "LEASEHOLD_SLOT"
	ownerVar    = "LEASEHOLD_OWNER"
	ownersVar   = "LEASEHOLD_OWNERS"
	deadlineVar = "LEASEHOLD_DEADLINE"
)

// traceVar is the variable in which OpenTelemetry passes a trace to a process.
const traceVar = "TRACEPARENT"

// ownersAbove returns the owners of the leases that this process runs under, the
// innermost last. An owner identifies a lease whatever the store and the name:
// no two leases have the same. Without LEASEHOLD_OWNER there are none: that is
// how a background process says that it outlives the command around it.
func ownersAbove(getenv func(string) string) []string {
	owner := getenv(ownerVar)
	if owner == "" {
		return nil
	}
	owners := strings.Fields(getenv(ownersVar))
	if !slices.Contains(owners, owner) { // set by a version that knows only its own
		owners = append(owners, owner)
	}
	return owners
}

// nested reports whether an attempt failed because the lock is held by a lease
// that this process runs under.
func nested(reason error) bool {
	var busy *leasehold.BusyError
	return errors.As(reason, &busy) && slices.Contains(ownersAbove(os.Getenv), busy.Holder.Owner)
}

// nestedReader reports whether a reader waits for ever because of a lease that this process
// runs under: a waiting writer is ahead of it, and waits for all readers to leave.
func nestedReader(ctx context.Context, st *store.Store, reason error) bool {
	var busy *leasehold.BusyError
	above := ownersAbove(os.Getenv)
	if len(above) == 0 || !errors.As(reason, &busy) || !busy.Holder.Waiting {
		return false
	}
	s, err := st.Inspect(ctx, busy.Name)
	return err == nil && s.Kind.Shared && slices.ContainsFunc(s.Holdings(), func(h store.Holding) bool { return slices.Contains(above, h.Holder.Owner) })
}

// nestedError is the error of a wait for a lock that this process already runs
// under.
func nestedError(name string) error {
	return fmt.Errorf("lock %q is held by a \"leasehold run\" that we run under, so the wait would never end: "+
		"leave out the inner command, or use another name (a background process that outlives the outer command waits if you unset %s)", name, ownerVar)
}
