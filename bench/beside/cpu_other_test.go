//go:build !linux

package beside

import "time"

func cpu() time.Duration { return 0 }
