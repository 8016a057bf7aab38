// A script that does its work and ends, as a migration before the server does.
console.log(`once ${JSON.stringify(process.argv.slice(2))}`);
process.exitCode = Number(process.env.ONCE_EXIT_CODE ?? 0);
