import { runProgram } from '../shared/program.js';
import { start } from './start.js';

/** The program of `npm start`. */
await runProgram(start);
