// Package admit gives random policies, webhooks and writes to Kubernetes' admission plugins and to Bowsprit's, and
// compares the answers: who is asked, in which order, with what, and what the client is told.
package admit
