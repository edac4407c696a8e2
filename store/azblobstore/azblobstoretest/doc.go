// Package azblobstoretest tests store/azblobstore on Azurite, an emulator of Azure Storage. It is a
// module of its own, so that programs with the store do not fetch what tests need.
package azblobstoretest
