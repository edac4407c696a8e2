// Systems reads packages with their tests as other systems have them, and reports what does
// not compile there:
//
//	systems [system/processor ...] -- [package ...]
//
// A build and go vet find the same and compile everything for it, which takes them 230 seconds of
// processor time a system where reading takes 20.
package main

import (
	"errors"
	"log"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("systems: ")
	args := os.Args[1:]
	end := slices.Index(args, "--")
	if end < 1 || end == len(args)-1 || slices.ContainsFunc(args[:end], func(s string) bool { return strings.Count(s, "/") != 1 }) {
		log.Fatal("usage: systems system/processor ... -- package ...")
	}
	code := 0
	for _, system := range args[:end] {
		if err := check(".", system, args[end+1:]...); err != nil {
			log.Printf("%s:\n%v", system, err)
			code = 1
		}
	}
	os.Exit(code)
}

// check reports what does not compile of the packages, in a folder's module or workspace, on a
// system such as "windows/amd64".
func check(dir, system string, patterns ...string) error {
	goos, goarch, _ := strings.Cut(system, "/")
	read, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
	}, patterns...)
	if err != nil {
		return err
	}
	var all []error
	packages.Visit(read, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			all = append(all, e)
		}
	})
	return errors.Join(all...)
}
