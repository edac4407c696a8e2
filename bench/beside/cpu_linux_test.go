package beside

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpu returns the processor time that this process and its children that run have used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	total := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	parent := strconv.Itoa(os.Getpid())
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		b, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(b), ") ") // the name may have spaces
		if f := strings.Fields(rest); len(f) > 12 && f[1] == parent {
			var user, system int64
			fmt.Sscan(f[11]+" "+f[12], &user, &system)
			total += time.Duration(user+system) * 10 * time.Millisecond
		}
	}
	return total
}
