// Package admit gives random policies, webhooks and writes to Kubernetes' admission plugins and to Bowsprit's, and
// compares the results: which plugins and webhooks are called, in which order, with which requests, and the response to
// the client.
package admit
