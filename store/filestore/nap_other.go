//go:build !linux

package filestore

import "time"

func yield() { nap() }

func nap() { time.Sleep(250 * time.Microsecond) }
