// Package durability tests that what a gateway acknowledges survives: on the disk, which a killed process alone cannot
// show, since the page cache outlives it; and over kills, which must leave nothing half done.
package durability
