// Package gcsstoretest tests store/gcsstore on fake-gcs-server, an emulator of Cloud Storage. It
// is a module of its own, so that programs with the store do not fetch the emulator.
package gcsstoretest
