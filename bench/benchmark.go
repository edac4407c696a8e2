package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
	"github.com/leasehold-dev/leasehold/bench/locks"
)

// benchmarks is the package whose benchmarks measure the kinds that have one.
const benchmarks = "github.com/leasehold-dev/leasehold/store/redisstore"

// buildBenchmarks makes the program with the benchmarks.
func (b *bench) buildBenchmarks(ctx context.Context) error {
	b.program = filepath.Join(b.files, "redisstore.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", b.program, benchmarks)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the benchmarks of %s: %w", benchmarks, err)
	}
	return nil
}

// benchmark has the benchmark of a kind lock on the servers of the spec.
func (b *bench) benchmark(ctx context.Context, k locks.Kind, s cell.Spec) (cell.Outcome, error) {
	goroutines := s.Goroutines[0]
	run := exec.CommandContext(ctx, b.program, "-test.run=^$", "-test.bench="+k.Benchmark, "-test.benchtime="+s.For.String(),
		"-messages.to="+strings.Join(s.Addrs, ","), "-messages.locks="+strconv.Itoa(goroutines))
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		return cell.Outcome{}, fmt.Errorf("%s: %w\n%s", k.Benchmark, err, out)
	}
	f, err := figuresOfBenchmark(out)
	f.Goroutines = goroutines
	return cell.Outcome{Figures: []cell.Figures{f}}, err
}

// figuresOfBenchmark reads the figures that BenchmarkMessages prints.
func figuresOfBenchmark(out []byte) (cell.Figures, error) {
	for line := range bytes.Lines(out) {
		words := strings.Fields(string(line))
		if len(words) < 2 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		n, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			continue
		}
		had := map[string]float64{}
		for i := 3; i < len(words); i += 2 {
			if had[words[i]], err = strconv.ParseFloat(words[i-1], 64); err != nil {
				return cell.Figures{}, fmt.Errorf("%s: %w", line, err)
			}
		}
		total := func(micros float64) time.Duration {
			return time.Duration(micros * float64(n) * float64(time.Microsecond))
		}
		if had["locks/s"] > 0 {
			return cell.Figures{
				Operations: n, PerSecond: had["locks/s"], Elapsed: time.Duration(float64(n) / had["locks/s"] * float64(time.Second)),
				ClientCPU: total(had["client-us"]), ServerCPU: total(had["server-us"]),
			}, nil
		}
	}
	return cell.Figures{}, fmt.Errorf("a benchmark printed no figures: %s", out)
}
