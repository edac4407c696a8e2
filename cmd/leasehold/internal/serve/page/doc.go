// Package page is the page of "leasehold serve": what a store holds, for people. It works without
// JavaScript, and with it shows changes as they are seen.
//
// page.go says which view answers which path, and protects all of them; locks.go, lock.go,
// events.go and health.go prepare the views for templates/; breaking.go breaks a lease; live.go
// tells browsers that there is something new; commands.go writes what does the same in a shell.
package page
