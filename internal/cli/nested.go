package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/leasehold-dev/leasehold"
)

// What a command finds in its environment, and, where it runs leasehold itself,
// what we find in ours.
const (
	nameVar     = "LEASEHOLD_NAME"
	tokenVar    = "LEASEHOLD_TOKEN"
	ownerVar    = "LEASEHOLD_OWNER"
	deadlineVar = "LEASEHOLD_DEADLINE"
)

// nested says whether the lock can not be had because the command that we are
// part of runs under it. The owner proves that, whatever the store: no two leases
// have the same. A name alone would not: other stores have locks of that name.
func nested(reason error) bool {
	var busy *leasehold.BusyError
	return errors.As(reason, &busy) && busy.Holder.Owner != "" && busy.Holder.Owner == os.Getenv(ownerVar) && busy.Name == os.Getenv(nameVar)
}

// nestedError is what there is to say then to who would wait: for itself.
func nestedError(name string) error {
	return fmt.Errorf("lock %q is the one that we run under: waiting for it would last until we have ended ourselves. "+
		"Leave out this \"leasehold run\", or take a lock of another name; to wait in the background until the command around us has ended, unset %s", name, ownerVar)
}
