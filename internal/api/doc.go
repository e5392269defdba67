// Package api is the ground both towers stand on: the protos of the OpenShell API as far as the project uses them, and
// of the conditional service, one folder a package, with the Go code generated from them.
//
// The openshell.* packages repeat upstream's names, numbers and types under comments of our own. The test in this folder
// compares them with testdata/upstream_facts.json, which testdata/extract_facts.py took from the official Python package.
//
// What the contract says about values, beyond their types, is in rules and policy, which know no more than the protos.
package api

//go:generate buf generate
