// Package hostos adapts the process to the scheduler and the memory of the operating system and of the Go runtime. Each
// of its parts is there for one measurement (docs/performance.md), and programs choose them: a library must not change
// settings of a process.
//
//   - AllowSpare adds a P while short requests run beside large responses: requests waited up to 19 ms for a thread in
//     a system call.
//   - YieldThread lets other threads run between pieces of large responses: a short request waited for a time slice of
//     3 to 4 ms.
//   - ReleaseStartup returns the memory of the start: 96 MB resident before, 60 to 70 MB after.
//   - CollectSooner lowers GOGC for a large heap: 10,000 simulated pods take 65 MB less.
package hostos
