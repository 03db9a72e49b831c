// Package bodies asks a running server for the same objects in every form, with Kubernetes' own serializers and
// clients.
package bodies
