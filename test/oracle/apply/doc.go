// Package apply compares field ownership and patches with Kubernetes' field manager and patch handlers.
package apply
