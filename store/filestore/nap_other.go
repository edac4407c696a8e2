//go:build !linux

package filestore

import "time"

func nap() { time.Sleep(100 * time.Microsecond) }
