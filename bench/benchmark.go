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

// benchmarkPackage is the package with the Go benchmarks that Kind.Benchmark names.
const benchmarkPackage = "github.com/leasehold-dev/leasehold/store/redisstore"

// buildBenchmarks compiles the tests of benchmarkPackage into a program.
func (b *bench) buildBenchmarks(ctx context.Context) error {
	b.benchmarks = filepath.Join(b.files, "redisstore.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", b.benchmarks, benchmarkPackage)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the benchmarks of %s: %w", benchmarkPackage, err)
	}
	return nil
}

// runBenchmark runs the Go benchmark of k against the servers of s. It takes longer than s.For,
// since a benchmark first finds out how many operations that time has room for.
func (b *bench) runBenchmark(ctx context.Context, k locks.Kind, s cell.Spec) (cell.Outcome, error) {
	goroutines := s.Goroutines[0]
	run := exec.CommandContext(ctx, b.benchmarks, "-test.run=^$", "-test.timeout="+(slack+10*s.For).String(), "-test.bench="+k.Benchmark, "-test.benchtime="+s.For.String(),
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
		metrics := map[string]float64{}
		for i := 3; i < len(words); i += 2 {
			if metrics[words[i]], err = strconv.ParseFloat(words[i-1], 64); err != nil {
				return cell.Figures{}, fmt.Errorf("%s: %w", line, err)
			}
		}
		total := func(micros float64) time.Duration {
			return time.Duration(micros * float64(n) * float64(time.Microsecond))
		}
		perSecond, client, server := metrics["locks/s"], metrics["client-us"], metrics["server-us"]
		if perSecond > 0 && client > 0 && server > 0 {
			return cell.Figures{
				Operations: n, PerSecond: perSecond, Elapsed: time.Duration(float64(n) / perSecond * float64(time.Second)),
				ClientCPU: total(client), ServerCPU: total(server),
			}, nil
		}
	}
	return cell.Figures{}, fmt.Errorf("a benchmark printed no figures: %s", out)
}
