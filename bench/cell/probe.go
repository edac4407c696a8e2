package cell

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/bench/servers"
)

// serverUse is what the servers have used and executed since they started.
type serverUse struct {
	cpu      time.Duration
	commands uint64
	asked    uint64 // by probing itself
}

// probe reads the figures of the servers.
func (s Spec) probe() (u serverUse, err error) {
	if s.PID != 0 {
		u.cpu, err = servers.CPU(s.PID)
		return u, err
	}
	for _, addr := range s.Probe {
		info, err := resp.Ask(addr, "INFO")
		if err != nil {
			return u, fmt.Errorf("INFO of %s: %w", addr, err)
		}
		if err := u.add(info); err != nil {
			return u, fmt.Errorf("INFO of %s: %w", addr, err)
		}
	}
	return u, nil
}

func (u *serverUse) add(info string) error {
	found := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_user", "used_cpu_sys":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			u.cpu += time.Duration(seconds * float64(time.Second))
		case "total_commands_processed":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return err
			}
			u.commands += n
		default:
			continue
		}
		found++
	}
	if found != 3 {
		return fmt.Errorf("%d of 3 figures found", found)
	}
	u.asked++
	return nil
}

// since returns the use between two probes. The later probe also counts the command of
// the earlier one.
func (u serverUse) since(before serverUse) serverUse {
	return serverUse{cpu: u.cpu - before.cpu, commands: u.commands - before.commands - before.asked}
}
