// Package replicas tests what several gateways on one PostgreSQL promise together: that work which a gateway leaves
// behind is taken over by another, and that the conditional calls hold whichever gateway they reach.
package replicas
