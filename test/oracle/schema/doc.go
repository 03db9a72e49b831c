// Package schema compares internal/object/schema with apiextensions-apiserver's structural schema packages.
//
// generate.go and values.go make random schemas and objects near them; upstream.go calls the Kubernetes libraries in
// the order of their request handler. By default a run takes some seconds; these environment variables make it longer:
//
//	ORACLE_CASES     objects for TestRandom (6,000)
//	ORACLE_SEED      another series of schemas (1)
//	ORACLE_REAL      objects for each version of a real definition (6)
//	ORACLE_FORMATS   strings for each format (20,000)
//	ORACLE_NUMBERS   schemas for numbers (20,000)
//	ORACLE_STRATEGY  schemas for whole strategies (300)
package schema
