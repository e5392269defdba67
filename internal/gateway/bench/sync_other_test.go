//go:build !linux

package bench

import "os"

func dataSync(f *os.File) error { return f.Sync() }
