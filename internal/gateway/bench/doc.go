// Package bench measures the reference gateway: what a conditional delete costs beside a plain one, beside the bare
// statement of its database and beside a compare-and-delete of etcd, all on one disk in one run; and what a full database
// costs a read. Only ratios mean something on another machine.
package bench
