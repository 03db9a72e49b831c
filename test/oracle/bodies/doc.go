// Package bodies requests the same objects from a running server in every form, with Kubernetes' own serializers and
// clients.
package bodies
