//go:build !linux

package sqlstore

import "time"

func yield() { nap() }

func nap() { time.Sleep(250 * time.Microsecond) }
