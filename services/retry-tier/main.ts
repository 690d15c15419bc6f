import { runService } from '../../shared/lifecycle/run-service.ts'
import { run } from './service.ts'

await runService({ name: 'retry-tier', start: run })
