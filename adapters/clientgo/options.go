package clientgo

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configures a Lock. The zero value and nil mean the defaults.
type Options struct {
	// Identity names the candidate. Others see it, also in "leasehold show". Default: the
	// name of the host and a random part. A fixed name gives no right to the lease of an
	// earlier process of that name: its TTL has to pass.
	Identity string
	// LeaseDuration, RenewDeadline and RetryPeriod must be those of the elector: see
	// Lock.Config. LeaseDuration is the TTL of the lease, and has to leave room for
	// RenewDeadline, RetryPeriod, Notice and 1 % for clocks, or New fails. The rest
	// is the time that a renewal may take. Default 15 s, 10 s and 2 s, as for the
	// components of Kubernetes and for controller-runtime.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Notice is the time between the moment when the elector stops leading at the latest
	// and that when another candidate can lead. Default LeaseDuration/20.
	Notice time.Duration
	// Require is the least guarantee that the store has to give, as in
	// leasehold.LockOptions.
	Require store.Class
	// Lost is called if the lease is lost while the elector leads. Without it, an elector
	// that loses its lease in another way than by failing renewals, such as "leasehold
	// break", goes on for RetryPeriod and RenewDeadline. End the context of the elector's
	// Run here, or the process. With controller-runtime end the process: a manager whose
	// context ends lets its controllers go on for its GracefulShutdownTimeout. Lost is
	// called on a goroutine of its own, once for each term, with an error that matches
	// leasehold.ErrLost. Default: nobody is notified.
	Lost func(error)
}

// withDefaults returns o with its defaults, or what is wrong with it.
func (o *Options) withDefaults() (Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	for _, d := range []struct {
		v         *time.Duration
		otherwise time.Duration
	}{
		{&full.LeaseDuration, 15 * time.Second},
		{&full.RenewDeadline, 10 * time.Second},
		{&full.RetryPeriod, 2 * time.Second},
	} {
		if *d.v == 0 {
			*d.v = d.otherwise
		}
	}
	if full.Notice == 0 {
		full.Notice = full.LeaseDuration / 20
	}
	if min(full.LeaseDuration, full.RenewDeadline, full.RetryPeriod, full.Notice) <= 0 {
		return full, fmt.Errorf("%w: LeaseDuration, RenewDeadline, RetryPeriod and Notice cannot be negative", leasehold.ErrInvalid)
	}
	if valid := full.LeaseDuration - validity.Drift(full.LeaseDuration); full.leadsOn()+full.Notice >= valid {
		return full, fmt.Errorf("%w: LeaseDuration %v, of which %v can be trusted, leaves no time for a renewal beside RenewDeadline %v, RetryPeriod %v and Notice %v",
			leasehold.ErrInvalid, full.LeaseDuration, valid, full.RenewDeadline, full.RetryPeriod, full.Notice)
	}
	if full.Identity == "" {
		host, _ := os.Hostname() // empty where unknown
		full.Identity = host + "_" + rand.Text()
	}
	return full, nil
}

// leadsOn is how long an elector can go on leading after an update that succeeded: it
// pauses for RetryPeriod, and then tries to update for RenewDeadline.
func (o *Options) leadsOn() time.Duration { return o.RetryPeriod + o.RenewDeadline }
