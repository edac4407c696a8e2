//go:build race

package redis_test

const raceDetector = true
