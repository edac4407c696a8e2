package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is where a run was made.
type Machine struct {
	CPU    string
	Count  int
	Kernel string
	Go     string
	OS     string
}

// ThisMachine describes it, as far as it can.
func ThisMachine() Machine {
	return Machine{
		CPU: cpuModel(), Count: runtime.NumCPU(), Kernel: firstLine("/proc/sys/kernel/osrelease"),
		Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// LoadAverage is the system's, of the last 1, 5 and 15 minutes.
func LoadAverage() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(f[:min(3, len(f))], " ")
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func (m Machine) String() string {
	return fmt.Sprintf("%d x %s, %s, kernel %s, %s", m.Count, m.CPU, m.OS, m.Kernel, m.Go)
}
