// Package fuzz has the fuzz targets of the gateway's calls. They run on a store in memory: with SQLite linked in, the build
// that fuzzing needs takes many minutes.
package fuzz
