// Package sameseed makes tests with rapid draw the same values each time. Otherwise a test could
// by chance find a mistake that has nothing to do with the change that it is run for. To search
// for more mistakes, use another seed and more checks:
//
//	go test ./store/redisstore -run Follow -rapid.seed=7 -rapid.checks=5000
package sameseed

import "flag"

// Set gives rapid the same seed each time, and as many checks, unless the command line says
// otherwise. TestMain calls it once: tests that run at the same time read the flags.
func Set(checks string) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.seed": "1", "rapid.nofailfile": "true"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err) // a flag of rapid has another name
		}
	}
}
